"""Everything that api, worker and scheduler have in common."""

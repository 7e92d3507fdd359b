"""What a claim store must do: one inheritable class a concern, run against every store there is."""

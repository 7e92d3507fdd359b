"""The claim store on PostgreSQL 15 or newer: all SQL is here."""

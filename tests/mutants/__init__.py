"""Edits that break a promise, each with the tests that must notice (`make mutants`)."""

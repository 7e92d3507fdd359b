"""Tests of the claim stores that are about one store alone."""

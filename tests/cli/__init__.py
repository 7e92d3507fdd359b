"""Tests of the console script."""

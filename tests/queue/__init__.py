"""Tests of shared.queue."""

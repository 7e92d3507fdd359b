"""Tests of the receiver."""

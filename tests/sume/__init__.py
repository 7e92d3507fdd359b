"""Tests of Sume's wire format."""

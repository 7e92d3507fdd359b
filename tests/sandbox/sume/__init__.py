"""Tests of the simulated Sume."""

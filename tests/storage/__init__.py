"""Tests of the storages."""

"""Sume's wire format: signatures, bodies and the job API; nothing else knows it."""

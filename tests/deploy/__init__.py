"""What is deployed fits the code."""

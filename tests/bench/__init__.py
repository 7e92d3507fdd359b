"""What the system costs, as ratios to limits that are measured in the same run (`make bench`)."""

"""A folder that goes on the PYTHONPATH of our processes, so that their wall clocks can be made to jump."""

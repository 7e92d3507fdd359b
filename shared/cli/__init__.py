"""The console script `sume-jobs`, one file a group of commands."""

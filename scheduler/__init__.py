"""Schedulers: repair what Redis and workers lost, ask Sume about expected jobs, prune and clean up."""

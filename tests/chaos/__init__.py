"""The crash matrix: the whole system under a seeded schedule of faults, and the same reckoning at the end of each run.

`make chaos` runs ten seeds; `python -m tests.chaos --help` says more. What stands in `test_*.py` here holds the
harness itself to its promises and is part of `make test`; the runs are not.
"""

"""The stories of `make demo`: each is played on real servers and judged by the rows and files it leaves."""

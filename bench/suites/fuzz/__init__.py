"""Generated queries against pyoxigraph; `python -m bench.suites.fuzz` (see `__main__`)."""

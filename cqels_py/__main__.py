"""`python -m cqels_py` is the same as `cqels`."""

from cqels_py.cli.main import run

if __name__ == "__main__":
    run()

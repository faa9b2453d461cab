"""``python -m pipeline`` is ``bicliques``."""

from pipeline.cli.main import program

if __name__ == "__main__":
    program()

"""``python -m bicliques`` is ``bicliques``."""

from bicliques import program

if __name__ == "__main__":
    program()

"""How many random examples a test takes."""

_few = False


def take_few() -> None:
    """From now on, a third of the examples, as `make test` takes them. Modules of tests have not been imported yet."""
    global _few
    _few = True


def examples(n: int) -> int:
    """So many examples in the whole suite, and a third of them in `make test`."""
    return n // 3 if _few else n

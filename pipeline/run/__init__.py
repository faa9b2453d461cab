"""The folder of a run: its files, its lock, its ledger. The rest of `pipeline` reads and writes runs through it."""

try:
    import fcntl  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "bicliques needs the locks of Linux or macOS (fcntl), which this system does not have; on Windows use WSL",
        name="fcntl",
    ) from error

"""The command line in this process."""

from pathlib import Path

import pytest

from bicliques.pipeline.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    code = main.main([str(word) for word in words])
    output, error = capsys.readouterr()
    return code, output, error

"""Small errors that tests should notice, from the TOML files beside this one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FOLDER", "Mutant", "load"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    """One change of one place.

    Parameters
    ----------
    name : str
    file : str
        Relative to the root of the project.
    old, new : str
        Text that is in the file once, and what takes its place.
    tests : tuple of str
        Arguments of pytest: the tests that should notice.
    says : str
        What goes wrong.
    equivalent : str
        Why nothing goes wrong after all, where that is so; such a mutant stays as a note, and is run only when named.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    says: str
    equivalent: str = ""

    def applied(self, text: str) -> str:
        """The text of the file with the change.

        Raises
        ------
        ValueError
            If the old text is not there once.
        """
        if (n := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: the old text is {n} times in {self.file}, and should be there once")
        return text.replace(self.old, self.new)


def load(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, file by file in the order of their names."""
    mutants = []
    for file in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(file.read_text())["mutant"]:
            mutants.append(Mutant(**entry | {"tests": tuple(entry["tests"])}))
    return mutants

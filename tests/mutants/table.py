"""Small errors that tests should notice, from the TOML files beside this one."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.drawing import ROOMS

FOLDER, ROOT = Path(__file__).parent, Path(__file__).parents[2]
_SOURCES = {".py", ".cu", ".cuh", ".js", ".css", ".html"}


@dataclass(frozen=True)
class Mutant:
    """One change of one place.

    Parameters
    ----------
    name : str
    file : str
        Relative to the root of the project. Empty if the old text is in no file, or in several.
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


def load(folder: Path = FOLDER, root: Path = ROOT) -> list[Mutant]:
    """All mutants, file by file in the order of their names.

    An entry names its file only if its old text is in several; so code may move without the table. The file is empty if
    the text is nowhere.
    """
    texts = {
        str(path.relative_to(root)): path.read_text()
        for room in ROOMS
        for path in (root / room).rglob("*")
        if path.suffix in _SOURCES
    }
    mutants = []
    for table in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(table.read_text())["mutant"]:
            files = [file for file, text in texts.items() if entry["old"] in text] if "file" not in entry else []
            file = files[0] if len(files) == 1 else ""
            mutants.append(Mutant(**{"file": file} | entry | {"tests": tuple(entry["tests"])}))
    return mutants

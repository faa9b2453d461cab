"""What pyproject.toml cannot say: a wheel has the graph of the demonstration inside a package."""

from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py


class WithExamples(build_py):
    """Builds the packages, and puts ``examples/`` into one of them."""

    def run(self) -> None:
        """Copy what is built. An editable installation finds ``examples/`` where it is."""
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "bicliques", "examples")
            folder.mkdir(parents=True, exist_ok=True)
            for graph in Path("examples").glob("*.parquet"):
                copy2(graph, folder)


setup(cmdclass={"build_py": WithExamples})

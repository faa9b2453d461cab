"""Machine code is kept in a folder named after the sources, and loaded without the compiler."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

from bicliques.kernels.compiled import jit, making
from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.lists import sum_lists
from bicliques.kernels.compiled.making import object_code
from bicliques.kernels.compiled.searching import first_at_least, sort
from bicliques.kernels.shipped import build_for_cores
from bicliques.schemas.errors import ResourceError
from tests.house.tree import ROOT, clean_environment


def said(program: str, cwd: Path = ROOT, *words: str, shipped: Path | None = None, **environment: str) -> str:
    """What a program prints. `shipped` has the machine code that came with the package, whatever this tree has."""
    folder = "None" if shipped is None else f"pathlib.Path({str(shipped)!r})"
    first = f"import pathlib; from bicliques.kernels.compiled import jit; jit.shipped_folder = lambda: {folder}"
    command = [sys.executable, "-c", f"{first}\n{program}", *words]
    ended = subprocess.run(
        command, cwd=cwd, env=clean_environment() | environment, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


def folder_of(root: Path, **environment: str) -> Path:
    return Path(said("from bicliques.kernels.compiled import jit; print(jit.code_folder())", root, **environment))


def test_the_folder_of_machine_code_depends_on_place_and_sources(tmp_path):
    for name in ("kernels", "schemas", "pipeline", "bicliques"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
    here, there = folder_of(ROOT), folder_of(tmp_path)
    assert here == folder_of(ROOT)
    seen = {here, there}
    assert len(seen) == 2
    for source in ("kernels/cpu/leaf.py", "kernels/gpu/slice_run.py", "kernels/bitmatrix/items.py"):
        with (tmp_path / source).open("a") as file:
            file.write("# changed\n")
        seen.add(folder_of(tmp_path))
    assert len(seen) == 5


#: Changes one file with compiled functions after the other, in one process. Prints those that nobody notices, and how
#: many there are.
CHANGE_EACH = """
import re
from pathlib import Path
from bicliques.kernels.compiled import jit
before, n = jit.code_folder(), 0
for path in sorted(Path("kernels").rglob("*.py")):
    text = path.read_text()
    if re.search("@(entry|compiled|intrinsic)\\n", text):
        path.write_text(f"{text}# changed\\n")
        jit._digest.cache_clear(), jit._of_sources.cache_clear()
        n += 1
        if jit.code_folder() == before:
            print(path)
        path.write_text(text)
print(n)
"""


def test_every_file_with_compiled_functions_is_among_the_sources(tmp_path):
    for name in ("kernels", "schemas", "pipeline", "bicliques"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
    *unnoticed, n = said(CHANGE_EACH, tmp_path).splitlines()
    assert unnoticed == []
    assert int(n) > 20


def test_the_folder_of_machine_code_can_be_chosen(tmp_path):
    assert folder_of(ROOT, NUMBA_CACHE_DIR=str(tmp_path / "a")).parent == tmp_path / "a"
    assert (
        folder_of(ROOT, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(tmp_path / "b")).parent == tmp_path / "b" / "bicliques"
    )


ADD_ONCE = """
import sys
import numpy as np
from bicliques.kernels.compiled.lists import sum_lists
sums = np.zeros(1, np.uint64)
sum_lists(np.zeros(1, np.int32), np.array([0, 1]), np.ones(1, np.uint64), np.ones(1, np.int64), sums)
print("numba" in sys.modules, sums[0])
"""

FIND_ONCE = """
import numpy as np
from bicliques.kernels.compiled.searching import find_texts
text, offsets = np.zeros(1, np.uint8), np.array([0, 1])
find_texts(text, offsets, text, offsets, np.zeros(1, np.int32))
"""


def test_what_is_kept_or_came_with_the_package_is_loaded_without_the_compiler(tmp_path):
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    assert said(ADD_ONCE, NUMBA_CACHE_DIR=str(tmp_path / "made")) == "True 1"
    [file] = (tmp_path / "made").glob("*/*")
    assert file.name.split("-")[0] == "bicliques.kernels.compiled.lists.sum_lists"
    assert said(ADD_ONCE, NUMBA_CACHE_DIR=str(tmp_path / "made")) == "False 1"
    shipped.mkdir()
    shutil.copy(file, shipped)
    asked = f"{ADD_ONCE}\nprint(sum_lists.is_kept())"
    assert said(asked, shipped=shipped, NUMBA_CACHE_DIR=str(own)) == "False 1\nTrue"
    assert not own.exists()
    os.truncate(shipped / file.name, 99)
    assert said(ADD_ONCE, shipped=shipped, NUMBA_CACHE_DIR=str(own)) == "True 1"
    assert [path.name for path in own.glob("*/*")] == [file.name]


def test_only_processors_of_the_kind_load_what_came_with_the_package(monkeypatch):
    has = dict.fromkeys((*jit.FEATURES, "avx512f"), True)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for lacking in (None, "avx512f", *jit.FEATURES):
        monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda lacking=lacking: has | {lacking: False})
        folder = jit.shipped_folder.__wrapped__()
        assert (folder is None) == (lacking in jit.FEATURES)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert jit.shipped_folder.__wrapped__() is None


@pytest.mark.exhaustive  # it compiles a search
def test_code_for_the_kind_of_processor_is_made_by_calls(tmp_path):
    made = build_for_cores(tmp_path, ["count words.tsv --engine cpu"])
    assert made.files == 1
    [file] = tmp_path.glob("*/*")
    assert file.name.startswith("bicliques.kernels.cpu.explore.explore-")
    assert file.parent.name == jit.shipped_folder().name
    count = "import sys, bicliques as bq\nprint(bq.count([(1, 2)], engine='cpu').count, 'numba' in sys.modules)"
    assert said(count, shipped=file.parent, NUMBA_CACHE_DIR=str(tmp_path / "own")) == "1 False"
    with pytest.raises(RuntimeError, match="count nothing ended with status 2"):
        build_for_cores(tmp_path, ["count nothing"])
    assert list(tmp_path.glob("*/*")) == []


#: What may stand in the place of a file of machine code, made of its path and of the file of another function.
DAMAGE = {
    "empty": lambda file, other: file.write_bytes(b""),
    "cut by a byte": lambda file, other: os.truncate(file, file.stat().st_size - 1),
    "one bit": lambda file, other: file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:]),
    "longer": lambda file, other: file.write_bytes(file.read_bytes() + b"\n"),
    "of another function": lambda file, other: file.write_bytes(other),
    "a link to text": lambda file, other: (file.unlink(), file.symlink_to("/etc/hostname")),
    "a link to itself": lambda file, other: (file.unlink(), file.symlink_to(file.name)),
    "a link to a device": lambda file, other: (file.unlink(), file.symlink_to("/dev/zero")),
    "a pipe": lambda file, other: (file.unlink(), os.mkfifo(file)),
}


#: Adds with the machine code of one folder after the other. Each time a fork does, because such code ended the process
#: by a signal, and a fork has what its parent has imported. Prints what a fork prints and its exit code.
ADD_IN_FORKS = """
import functools, logging, os, sys
import numpy as np
from bicliques.kernels.compiled.lists import sum_lists
logging.basicConfig(stream=sys.stdout, format="%(message)s")

def add(folder):
    os.environ["NUMBA_CACHE_DIR"] = folder
    sums = np.zeros(1, np.uint64)
    sum_lists(np.zeros(1, np.int32), np.array([0, 1]), np.ones(1, np.uint64), np.ones(1, np.int64), sums)
    return sums[0]

first, *folders = sys.argv[1:]
add(first)
sum_lists.loaded.clear()
if making := sys.modules.get("bicliques.kernels.compiled.making"):
    making.object_code = functools.cache(making.object_code)  # once for all forks
    add(f"{first} again")
    sum_lists.loaded.clear()
for folder in folders:
    sys.stdout.flush()
    if (fork := os.fork()) == 0:
        print("compiler" if "numba" in sys.modules else "no compiler", add(folder), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]))
"""


def test_machine_code_that_is_damaged_is_compiled_again(tmp_path):
    for program in (ADD_ONCE, FIND_ONCE):
        said(program, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    folders, files = [], []
    for damage, change in DAMAGE.items():
        folders.append(shutil.copytree(tmp_path / "kept", tmp_path / damage))
        [file], [other] = (list(folders[-1].glob(f"*/*.{name}-*.o")) for name in ("sum_lists", "find_texts"))
        change(file, other.read_bytes())
        files.append(file)
    told = [f"{file} is no whole file of machine code, and is compiled again\ncompiler 1\n0\n" for file in files]
    assert said(ADD_IN_FORKS, ROOT, str(tmp_path / "new"), *map(str, folders)) == "".join(told).strip()
    told = ["no compiler 1\n0\n" for _ in files]
    assert said(ADD_IN_FORKS, ROOT, str(tmp_path / "kept"), *map(str, folders)) == "".join(told).strip()
    for file in files:
        assert sorted(path.suffix for path in file.parent.iterdir()) == [".o", ".o"]


@pytest.mark.usefixtures("empty")
def test_machine_code_has_its_name_after_it_is_on_the_disk(tmp_path, monkeypatch):
    """After a loss of power a name may be there, and what was not flushed is not."""
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append((os.fstat(file).st_ino, list(tmp_path.glob("*/*.o")))))
    assert found(np.array([1, 3, 3, 5]), 3) == 1
    [file] = tmp_path.glob("*/*.o")
    assert flushed == [(file.stat().st_ino, [])]


@pytest.mark.usefixtures("empty")
def test_a_folder_in_the_place_of_machine_code_is_named(tmp_path):
    assert found(np.array([1, 3, 3, 5]), 3) == 1
    [file] = tmp_path.glob("*/*.o")
    file.unlink()
    file.mkdir()
    found.loaded.clear()
    with pytest.raises(ResourceError, match=rf"^machine code cannot .* \(Is a directory\); move {file} away, or name "):
        found(np.array([1, 3, 3, 5]), 3)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Nothing is kept. Functions of tests are not among the sources that name the folder."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for own in (found, every_kind):
        own.loaded.clear()


@pytest.mark.usefixtures("empty")
def test_functions_for_compiled_code_cannot_be_called_from_python():
    for _ in range(2):
        with pytest.raises(TypeError, match="first_at_least can be called from compiled code only"):
            first_at_least(np.zeros(1), 0, 1, 2)
        assert found(np.array([1, 3, 3, 5]), 3) == 1


@entry
def found(values, wanted):
    sort(values, 0, values.size)
    return first_at_least(values, 0, values.size, wanted)


@entry
def every_kind(numbers, pair, scale):
    """Arrays of several types, a tuple with an array and a tuple of a number, and a number."""
    own, (start,) = pair
    for i in range(start, own.size):
        own[i] = numbers[i] * scale


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    "call", ["pathlib.Path.mkdir", "pathlib.Path.open", "bicliques.kernels.compiled.sealed.read_regular"]
)
def test_a_folder_that_cannot_keep_machine_code_is_one_sentence(call, monkeypatch):
    def refuse(path: Path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        says = r"^machine code cannot be kept in \S+ \(Permission denied\); see .*, or name .* in \$NUMBA_CACHE_DIR$"
        with pytest.raises(ResourceError, match=says):
            found(np.array([1, 3, 3, 5]), 3)
    assert found(np.array([1, 3, 3, 5]), 3) == 1


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("call", ["pathlib.Path.mkdir", "tempfile.TemporaryFile"])
def test_a_folder_that_cannot_be_written_is_noticed_before_compiling(call, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def compile_it(*_) -> bytes:
        pytest.fail("it compiles what cannot be kept")

    monkeypatch.setattr(call, refuse)
    monkeypatch.setattr(making, "object_code", compile_it)
    with pytest.raises(ResourceError, match=r"^machine code cannot be kept in \S+ \(Permission denied\)"):
        found(np.array([1, 3, 3, 5]), 3)


@pytest.mark.usefixtures("empty")
def test_arrays_tuples_and_numbers_are_handed_over():
    for dtype in (np.int32, np.int64, np.uint64, np.uint8, np.float64):
        out = np.full(5, 9, dtype)
        assert every_kind(np.arange(5, dtype=np.int32), (out, (np.int32(2),)), True + 2) == 0
        assert out.tolist() == [9, 9, 6, 9, 12]
    flags = np.zeros(3, np.bool_)
    every_kind(np.array([0, 1, 2], np.int32), (flags, (1,)), 1)
    assert flags.tolist() == [False, True, True]


def test_numbers_that_are_negative_come_back():
    sums = np.zeros(1, np.uint64)
    assert sum_lists(np.zeros(1, np.int32), np.array([0, 1]), np.ones(1, np.uint64), np.zeros(1, np.int64), sums) == -1


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (np.zeros((2, 2)), "contiguous arrays of one dimension"),
        (np.zeros(6)[::2], "contiguous arrays of one dimension"),
        (1.5, "not float"),
        (None, "not NoneType"),
    ],
)
def test_what_compiled_code_cannot_take_is_refused(wrong, what):
    with pytest.raises(TypeError, match=what):
        found(wrong, 1)


def test_compiled_code_that_would_need_more_than_itself_is_refused():
    def allocates(values):
        values[0] = np.empty(values.size)[0]

    def counts_halves(values):
        return values[0] / 2

    with pytest.raises(TypingError, match=r"empty\(int64\)"):
        object_code(allocates, "f8")
    with pytest.raises(TypeError, match="counts_halves returns float64, not int64"):
        object_code(counts_halves, "i8")


def test_decorated_functions_know_their_place():
    assert (found.module, found.name) == (__name__, "found")
    assert compiled(said).function is said

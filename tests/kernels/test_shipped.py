"""The machine code of the package is that of the kernels that engines ask for, and a device gets what it can run."""

import ctypes
import logging
import os
import shutil
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bicliques.kernels import shipped
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.layout import ITEM, PARAMS, QUEUE
from bicliques.kernels.bitmatrix.memory import GpuSizes, HubGraph
from bicliques.kernels.compiled.sealed import sealed
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.kernels.gpu import machine_code, pack
from bicliques.kernels.gpu.machine_code import COMPILER, FOLDER, LATER, Variant, code_for, file_name, load, load_on
from bicliques.kernels.gpu.records import RECORD
from bicliques.kernels.gpu.row_hashes import Lists, RowHasher
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice
from tests.kernels.resources import compile_shipped, is_shipped_of_now
from tests.support.one_kind import cover_of
from tests.support.oracles import graph_of, random_edges

PLAIN = Variant("bitmatrix", (("PLAIN", 1), ("ROW_CAP", 64)))
FEW = Subtrees.of_roots(np.arange(5))
SEARCHES = [
    (Search("count"), Limits()),
    (Search("count"), Limits(rows=5)),
    (Search("count", min_left=2), Limits()),
    (Search("count", sizes=True), Limits()),
    (Search("fingerprint"), Limits()),
    (Search("fingerprint", sizes=True), Limits()),
    (Search("list"), Limits()),
    (Search("list", min_right=2), Limits(rows=5)),
    (Search("list", largest=1), Limits()),
    (Search("list", min_left=99, min_right=99, missing_pairs=1), Limits()),
    (Search("count", pq="all"), Limits()),
]


class EndError(Exception):
    """The launch that is of interest has been asked for."""


class UselessDevice(EmulatedDevice):
    """It remembers which kernels it is asked for, and runs none of them. All problems are too large for it."""

    def __init__(self):
        super().__init__(n_multiprocessors=1)
        self.asked = set()

    def resident_blocks(self, kernel, defines, n_threads):
        self.asked.add(Variant.of(kernel, defines))
        return super().resident_blocks(kernel, defines, n_threads)

    def launch(self, kernel, defines, n_blocks, n_threads, params):
        self.asked.add(Variant.of(kernel, defines))
        if kernel == "cumbe":
            raise EndError
        if kernel in ("bitmatrix", "sieve", "near", "pivot"):
            self._put_aside(params.view(PARAMS)[0])
        return 0.0

    def enqueue(self, kernel, defines, n_blocks, n_threads, params):
        self.asked.add(Variant.of(kernel, defines))
        raise MemoryError("so the host unpacks")

    def _put_aside(self, params):
        """All items are too large, and one record of the output is a hole."""
        n = int(params["n_items"])
        ctypes.memmove(int(params["oversize"]), int(params["items"]), n * ITEM.itemsize)
        whole = (ctypes.c_char * QUEUE.itemsize).from_address(int(params["queue"]))
        queue = np.frombuffer(whole, QUEUE)[0:1]
        queue["head"] = queue["oversize"] = n
        if params["list"]:
            ctypes.memset(int(params["records"]), 0, RECORD.itemsize)
            queue["rows"] = 1


def graphs():
    """A small graph with a hub, one that has more rows than the first launch allows, and one for three levels."""
    rng = np.random.default_rng(9)
    triples = np.sort(np.argsort(rng.random((40_000, 150)))[:, :3])
    triples = np.unique(triples, axis=0)
    many = np.column_stack([np.repeat(np.arange(len(triples)), 3), triples.ravel()]).astype(np.int32)
    left = BuildOptions(root_side="left")
    return [graph_of(random_edges(rng, 40, 200, 0.6), left), graph_of(many[: 3 * 2_500], left), graph_of(many, left)]


@pytest.mark.exhaustive
def test_engines_ask_for_what_is_shipped_and_for_nothing_else(monkeypatch):
    device = UselessDevice()
    for graph, is_dense in product(graphs(), (False, True)):
        monkeypatch.setattr(HubGraph, "is_dense", is_dense)
        for search, limits in SEARCHES:
            BitMatrixEngine(device, GpuSizes().halved(9)).mine(graph, FEW, search, limits, nowhere)
            with pytest.raises(EndError):
                CumbeEngine(device, CumbeSizes().halved(9)).mine(graph, FEW, search, limits, nowhere)
        for least in (1, 2):
            marked = Search("list", min_left=least, marked=True)
            one = replace(graph, marks=np.array([int(graph.root_indices[0]) << 32]))  # the first edge of the first root
            BitMatrixEngine(device, GpuSizes().halved(9)).mine(one, FEW, marked, Limits(), nowhere)
    cover, cliques = cover_of(random_edges(np.random.default_rng(9), 20, 20, 0.6)), Search("count", pq="cliques")
    BitMatrixEngine(device, GpuSizes().halved(9)).mine(cover, FEW, cliques, Limits(), nowhere)
    lists = Lists(np.zeros(1, np.int32), np.array([0, 1], np.int32), np.ones(1, np.int32))
    hasher = RowHasher(device, (None, None), (np.ones(1, np.uint64),) * 2, "left")
    with pytest.raises(MemoryError):
        hasher.rows(lists, lists, np.zeros(1, np.int32), np.zeros(1, np.int64), 1)

    def is_first(variant: Variant) -> bool:
        return dict(variant.defines).get("ROW_CAP", 0) <= GpuSizes().row_cap

    first = {variant for variant in device.asked if is_first(variant)}
    assert first == {variant for variant in shipped.shipped() if is_first(variant)}
    assert len(set(shipped.shipped())) == len(shipped.shipped()) == len(first) + 4
    assert {variant.kernel for variant in first} == set(machine_code.KERNELS)
    assert len(device.asked - first) > 2, "problems that the first launch leaves need further shapes"


def test_the_usual_sizes_and_their_halves_ask_for_the_same():
    assert {CumbeSizes().halved(n).defines == CumbeSizes().defines for n in range(9)} == {True}
    fixed = {
        "row_cap",
        "list_cap",
        "poll",
        "give_min",
        "window_words",
        "least_sifted",
        "roots_per_wedge",
        "many_roots",
        "narrow",
        "min_blocks",
    }
    halved = GpuSizes().halved(9)._asdict()
    assert {name: halved[name] for name in fixed} == {name: GpuSizes()._asdict()[name] for name in fixed}


#: Compute capability -> what is loaded there, of all that is shipped.
LOADED = {
    (7, 5): "nvrtc",
    (8, 0): "sm_80",
    (8, 6): "sm_80",
    (8, 7): "nvrtc",
    (9, 0): "sm_90",
    (10, 3): "sm_100",
    (11, 0): "nvrtc",
    (12, 1): "sm_120",
    (13, 0): "compute_120",
    (21, 4): "compute_120",
}


@pytest.fixture
def folder(tmp_path):
    """A folder with a file for each of the architectures, and of each variant that is asked for below."""
    for architecture in shipped.TARGETS:
        name = file_name(PLAIN, architecture)
        (tmp_path / name).write_bytes(sealed(name, b"code"))
    (tmp_path / COMPILER).write_text("13.0")
    return tmp_path


def what(code: machine_code.Code) -> str:
    return "nvrtc" if code.path is None else code.path.stem.rpartition("-")[2]


@pytest.mark.parametrize("capability", LOADED, ids=str)
def test_a_device_gets_what_it_can_run(folder, capability, monkeypatch, caplog):
    """Through `load`, with a CuPy that says what it was told to load."""
    modules = []
    digits = f"{capability[0]}{capability[1]}"

    class RawModule:
        def __init__(self, **given):
            modules.append(given)

        get_function = get_global = staticmethod(lambda name: name)

    toy = SimpleNamespace(
        RawModule=RawModule,
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(id=3, compute_capability=digits),
            runtime=SimpleNamespace(driverGetVersion=lambda: 13000),
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", toy)
    monkeypatch.setattr(machine_code, "CODE", folder)
    load_on.cache_clear()
    caplog.set_level(logging.INFO, "bicliques")
    kernel = load(PLAIN)
    assert load(PLAIN) is kernel
    load_on.cache_clear()
    [given], [record] = modules, caplog.records
    wanted = LOADED[capability]
    if wanted == "nvrtc":
        assert given == {
            "code": machine_code.source_of("bitmatrix"),
            "options": machine_code.compile_options(PLAIN.defines),
        }
        assert "NVRTC compiles it, because the package has no machine code for this compute" in record.getMessage()
    else:
        assert given == {"path": str(folder / file_name(PLAIN, wanted))}
        assert wanted in record.getMessage()
    kind = {"nvrtc": "nvrtc", "compute_120": "ptx"}.get(wanted, "cubin")
    assert record.event == "kernel"
    assert record.facts == {"kernel": "bitmatrix", "code": kind, "capability": digits, "device": 3}


@pytest.mark.parametrize(
    ("driver", "compiler", "cubin", "ptx"),
    [
        (13000, "13.0", "sm_90", "compute_120"),
        (13020, "13.0", "sm_90", "compute_120"),
        (14010, "13.0", "sm_90", "compute_120"),
        (13000, "13.2", "sm_90", "nvrtc"),  # a driver compiles no PTX of a later CUDA
        (12090, "13.0", "nvrtc", "nvrtc"),
    ],
)
def test_a_driver_that_is_too_old_gets_the_source(folder, driver, compiler, cubin, ptx):
    (folder / COMPILER).write_text(compiler)
    assert what(code_for(PLAIN, (9, 0), driver, folder)) == cubin
    late = code_for(PLAIN, (13, 0), driver, folder)
    assert what(late) == ptx
    assert ("and the machine code is of CUDA" in late.sentence) == (ptx == "nvrtc")


def test_other_options_other_sources_and_no_files_lead_to_the_source(folder, monkeypatch, tmp_path):
    def reason(variant: Variant, folder: Path = folder) -> str:
        code = code_for(variant, (9, 0), 13000, folder)
        assert (code.kind, code.path) == ("nvrtc", None)
        return code.sentence.partition("because ")[2]

    other = PLAIN._replace(defines=(("PLAIN", 1), ("ROW_CAP", 128)))
    assert reason(other) == "the package has no machine code with these options"
    assert reason(PLAIN._replace(kernel="cumbe")) == "the package has no machine code with these options"
    assert reason(PLAIN, tmp_path / "nowhere") == "this package came without machine code"
    assert what(code_for(PLAIN, (9, 0), 13000, folder)) == "sm_90"
    monkeypatch.setattr(machine_code, "source_digest", lambda: "0" * 16)
    assert reason(PLAIN) == "the package has no machine code with these options"


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "of another", "pipe", "folder"])
def test_machine_code_that_is_damaged_is_not_loaded(folder, damage):
    name, other = file_name(PLAIN, "sm_90"), file_name(PLAIN, "sm_80")
    path = folder / name
    text = path.read_bytes()
    path.unlink()
    if damage == "pipe":
        os.mkfifo(path)
    elif damage == "folder":
        path.mkdir()
    else:
        changed = {"empty": b"", "cut": text[:-1], "changed": b"C" + text[1:], "of another": sealed(other, b"code")}
        path.write_bytes(changed[damage])
    code = code_for(PLAIN, (9, 0), 13000, folder)
    assert (code.kind, code.path) == ("nvrtc", None)
    assert code.sentence.endswith(f"NVRTC compiles it, because {path} is damaged")


def test_the_name_of_a_file_depends_on_what_is_compiled_alone(monkeypatch, tmp_path):
    names = {file_name(variant, target) for variant in shipped.shipped() for target in shipped.TARGETS}
    assert len(names) == len(shipped.shipped()) * len(shipped.TARGETS)
    mixed = Variant.of("bitmatrix", {"ROW_CAP": 64, "PLAIN": 1})
    assert mixed == PLAIN
    before = file_name(PLAIN, "sm_90")
    copy = shutil.copytree(FOLDER, tmp_path / "elsewhere")
    monkeypatch.setattr(machine_code, "FOLDER", copy)
    assert file_name(PLAIN, "sm_90") == before
    with (copy / "common" / "hash.cuh").open("a") as header:
        header.write("\n")
    assert file_name(PLAIN, "sm_90") != before


def test_the_folder_of_machine_code_is_not_among_the_sources():
    """`source_digest` reads all ``*.cu*`` below the sources, and ``*.cubin`` would be among them."""
    assert not machine_code.CODE.is_relative_to(FOLDER)


@pytest.fixture(scope="module")
def compiler():
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed (pip install '.[nvrtc]')")


@pytest.mark.usefixtures("compiler")
def test_files_are_machine_code_and_ptx_of_the_current_sources(tmp_path):
    variants, targets = pack.shipped(), ("sm_90", LATER)
    made = shipped.build(tmp_path, variants, targets, processes=1)
    cubin, ptx = (tmp_path / file_name(variants[0], target) for target in targets)
    assert cubin.read_bytes().startswith(b"\x7fELF")
    assert b".target sm_120" in ptx.read_bytes()
    assert ptx.read_bytes().count(b"\0") == 0
    assert made.n_bytes == cubin.stat().st_size + ptx.stat().st_size
    for path in (cubin, ptx):
        assert str(FOLDER).encode() not in path.read_bytes()
    for capability, target in (((9, 0), "sm_90"), ((13, 0), LATER)):
        assert what(code_for(variants[0], capability, 13090, tmp_path)) == target


@pytest.mark.usefixtures("compiler")
def test_building_again_makes_what_is_missing_and_removes_what_is_old(tmp_path):
    variants = [variant for variant in shipped.shipped() if variant.kernel == "hub_bits"]
    targets = ("sm_80", "sm_90")
    files = {file_name(variants[0], target) for target in targets} | {COMPILER}
    assert shipped.build(tmp_path, variants, targets, processes=1).files == 2
    assert {path.name for path in tmp_path.iterdir()} == files
    assert shipped.build(tmp_path, variants, targets, processes=1).files == 0
    (tmp_path / file_name(variants[0], "sm_80")).unlink()
    os.truncate(tmp_path / file_name(variants[0], "sm_90"), 1000)
    for stale in ("bitmatrix-0123456789abcdef-sm_90.cubin", "pack-1-sm_90.partial"):
        (tmp_path / stale).write_text("")
    assert shipped.build(tmp_path, variants, targets, processes=1).files == 2
    assert {path.name for path in tmp_path.iterdir()} == files
    (tmp_path / COMPILER).write_text("12.9")
    assert shipped.build(tmp_path, variants, targets, processes=1).files == 2


@pytest.mark.usefixtures("compiler")
def test_a_kernel_that_does_not_compile_ends_the_build(tmp_path):
    from bicliques.kernels.shipped import CompileError

    broken = Variant("hub_bits", (("atomicOr", 1),))
    with pytest.raises(CompileError, match=r"hub_bits\.cu with "):
        shipped.make(tmp_path, broken, "sm_90")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaustive
@pytest.mark.usefixtures("compiler")
def test_all_that_is_shipped_compiles(tmp_path):
    """For architectures to come, which is quick. `test_cuda_compiles` has every kernel for every one there is."""
    if is_shipped_of_now():
        pytest.skip("it was compiled with this compiler, these options, these sizes and these sources")
    made = compile_shipped(tmp_path)
    assert made.files == len(list(tmp_path.iterdir())) - 1 == 24
    assert 2e6 < made.n_bytes < 15e6
    for variant in shipped.shipped():
        assert code_for(variant, (13, 0), 13000, tmp_path).kind == "ptx"

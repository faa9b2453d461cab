"""Host and kernels agree about records that they share, field by field, and about numbers that both state.

The host's side is a NumPy dtype or a constant. From these lists come the ``static_assert`` lines that are compiled here
together with the header.
"""

import re

import numpy as np
import pytest

from bicliques.kernels.bitmatrix import layout as bitmatrix
from bicliques.kernels.bitmatrix.memory import (
    HUB_DEPTH,
    HUB_FRAME,
    NEAR_DEPTH,
    NEAR_FRAME,
    SIEVE_DEPTH,
    SIEVE_FRAME,
    GpuSizes,
    scratch,
    sieve,
    sieve_scratch,
)
from bicliques.kernels.compiled import searching
from bicliques.kernels.cumbe import memory as cumbe
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.kernels.gpu import records, slice_run
from bicliques.kernels.gpu.machine_code import FOLDER, compile_options
from tests.kernels.resources import CompileError, compile_source

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed (pip install '.[nvrtc]')")

_SIZES, _CUMBE_SIZES = GpuSizes(), CumbeSizes()

#: File and record -> the host's dtype.
LAYOUTS = {
    ("common/types.cuh", "Record"): records.RECORD,
    ("common/types.cuh", "SizeSlot"): records.SIZE,
    ("common/pack.cu", "PackTotals"): records.PACK_TOTALS,
    ("common/pack.cu", "PackParams"): records.PACK_PARAMS,
    ("common/row_hashes.cu", "Wrong"): records.ROW_HASH_WRONG,
    ("common/row_hashes.cu", "RowHashParams"): records.ROW_HASH_PARAMS,
    ("bitmatrix/types.cuh", "Item"): bitmatrix.ITEM,
    ("bitmatrix/types.cuh", "LeafSlot"): bitmatrix.LEAF,
    ("bitmatrix/types.cuh", "Queue"): bitmatrix.QUEUE,
    ("bitmatrix/types.cuh", "Params"): bitmatrix.PARAMS,
    ("bitmatrix/worker.cuh", "Scratch"): scratch(_SIZES.row_cap, _SIZES.list_cap),
    ("bitmatrix/sieve_types.cuh", "Sieve"): sieve(_SIZES.row_cap),
    ("bitmatrix/sieve_types.cuh", "SieveScratch"): sieve_scratch(_SIZES.row_cap, _SIZES.list_cap),
    ("bitmatrix/near_types.cuh", "NearFrame"): NEAR_FRAME,
    ("cumbe/types.cuh", "CumbeItem"): cumbe.CUMBE_ITEM,
    ("cumbe/types.cuh", "CumbeQueue"): cumbe.CUMBE_QUEUE,
    ("cumbe/types.cuh", "Shelf"): cumbe.SHELF,
    ("cumbe/types.cuh", "CumbeParams"): cumbe.CUMBE_PARAMS,
}

#: Other records in the files above. Of those in SIZES, the host knows the size. Of the others, the host knows nothing.
SIZES = {
    ("bitmatrix/worker.cuh", "HubFrame"): HUB_FRAME.itemsize,
    ("bitmatrix/sieve_types.cuh", "SieveFrame"): SIEVE_FRAME.itemsize,
    ("cumbe/types.cuh", "Level"): 4 * cumbe.LEVEL_INTS,
}
OF_THE_KERNEL = {
    "Kin",
    "PackSide",
    "OfList",
    "SideSums",
    "WarpShared",
    "Worker",
    "Problem",
    "Near",
    "NearSide",
    "Span",
    "Place",
}

#: File -> the numbers of the host that its macros must equal. Launchers define some of them from the options of memory.
#: Because the defaults are the same, the budget measures the kernels that run.
CONSTANTS = {
    "common/types.cuh": {"NOBODY": records.NOBODY},
    "bitmatrix/types.cuh": {
        "ROOT": bitmatrix.ROOT,
        "HUB": bitmatrix.HUB,
        "PATH": bitmatrix.PATH,
        "BASE_CAP": records.WORD_BITS,
        "HUB_DEPTH": HUB_DEPTH,
        "ROW_CAP": _SIZES.row_cap,
        "LIST_CAP": _SIZES.list_cap,
        "POLL": _SIZES.poll,
        "GIVE_MIN": _SIZES.give_min,
        "LEAST_SIFTED": _SIZES.least_sifted,
        "ROOTS_PER_WEDGE": _SIZES.roots_per_wedge,
        "NARROW": _SIZES.narrow,
        "MIN_BLOCKS": _SIZES.min_blocks,
    },
    "bitmatrix/sieve_types.cuh": {"SIEVE_DEPTH": SIEVE_DEPTH},
    "bitmatrix/near_types.cuh": {"NEAR_DEPTH": NEAR_DEPTH},
    "bitmatrix/bound.cuh": {
        "BY_EDGES": searching.EDGES,
        "BY_VERTICES": searching.VERTICES,
        "BY_BALANCE": searching.BALANCE,
        "BY_BASE": searching.BASE,
        "BY_ROOTS": searching.ROOTS,
    },
    "bitmatrix/candidate_window.cuh": {"WINDOW_WORDS": _SIZES.window_words},
    "bitmatrix/queue.cuh": {"GIVEN": bitmatrix.GIVEN},
    "common/biclique.cuh": {"SIZES_OVERFLOW": slice_run.SIZES_OVERFLOW},
    "cumbe/types.cuh": {"N_PHASES": len(cumbe.PHASES), "IDLING": cumbe.PHASES.index("idling"), **_CUMBE_SIZES.defines},
}


def field_of(record: str, name: str) -> str:
    """The name of a field in the kernel. The parameters of packing have a record for each side: ``base.indptr``."""
    of_a_side = record == "PackParams" and name.startswith(("base_", "root_")) and name != "root_is_left"
    return name.replace("_", ".", 1) if of_a_side else name


def assertions(record: str, dtype: np.dtype) -> list[str]:
    # NVRTC has no offsetof; this is what its header would make of it
    lines = [f'static_assert(sizeof({record}) == {dtype.itemsize}, "size of {record}");']
    for name, (form, offset, *_) in (dtype.fields or {}).items():
        field = field_of(record, name)
        lines += [
            f'static_assert(__INTADDR__(&((({record}*)0)->{field})) == {offset}, "where {field} is");',
            f'static_assert(sizeof((({record}*)0)->{field}) == {form.itemsize}, "size of {field}");',
        ]
    return lines


def check(file: str, lines: list[str]):
    options = [*compile_options(()), "--gpu-architecture=compute_90"]
    assert compile_source("\n".join([f'#include "{file}"', *lines, ""]), "layouts.cu", options) == ""


@pytest.mark.parametrize(("file", "record"), LAYOUTS)
def test_record_fields_are_at_the_offsets_of_the_host(file, record):
    check(file, assertions(record, LAYOUTS[file, record]))


@pytest.mark.parametrize(("file", "record"), SIZES)
def test_records_have_the_size_that_the_host_expects(file, record):
    check(file, [f'static_assert(sizeof({record}) == {SIZES[file, record]}, "size of {record}");'])


@pytest.mark.parametrize("file", CONSTANTS)
def test_host_and_kernel_state_the_same_number(file):
    check(file, [f'static_assert({name} == {value}, "{name}");' for name, value in CONSTANTS[file].items()])


def test_every_record_of_these_files_is_tested():
    files = {file for file, _ in LAYOUTS}
    found = {record for file in files for record in re.findall(r"^struct (\w+)", (FOLDER / file).read_text(), re.M)}
    assert found == {record for _, record in [*LAYOUTS, *SIZES]} | OF_THE_KERNEL


def test_swapped_fields_are_noticed():
    names = list(bitmatrix.PARAMS.names or ())
    at = names.index("n_pool")
    names[at], names[at + 1] = names[at + 1], names[at]
    with pytest.raises(CompileError, match="where n_pool is"):
        check("bitmatrix/types.cuh", assertions("Params", np.dtype([(name, np.int64) for name in names])))

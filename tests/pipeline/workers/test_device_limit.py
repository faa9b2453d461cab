"""A limit of device memory holds for one call, in this process and in those that it starts."""

import os
import sys
from types import SimpleNamespace

import pytest

from bicliques.kernels.gpu import device
from bicliques.pipeline.workers.devices import limited, pool_bytes, pool_of
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import InputError

VARIABLE = "CUPY_GPU_MEMORY_LIMIT"


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("16GB", 16 * 10**9),
        ("16 GiB", 16 << 30),
        ("4.5G", 4_500_000_000),
        ("8192MiB", 8192 << 20),
        ("4000000000", 4 * 10**9),
        ("2 TB", 2 * 10**12),
    ],
)
def test_sizes_have_units_and_the_process_takes_three_gigabytes(text: str, n_bytes: int) -> None:
    assert pool_bytes(text) == n_bytes - 3 * 10**9


@pytest.mark.parametrize("text", ["", "-3GB", "16 gigs", "0.5%", "GB", 16])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"the device memory is a size as 16GB or 12GiB, not .*correct device_memory"):
        WorkerOptions(device_memory=text)


@pytest.mark.parametrize("text", ["0", "0.1", "3 GiB", "3999MB"])
def test_what_leaves_no_room_beside_cuda_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"the device memory is at least 4GB, not {text}, .* raise device_memory"):
        WorkerOptions(device_memory=text)


def test_a_pool_has_a_size_of_its_own() -> None:
    with pytest.raises(InputError, match="leave device_memory or rmm_pool out"):
        WorkerOptions(device_memory="16GB", rmm_pool="8GB")


class Pool:
    """As much of CuPy's pool as is asked."""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit

    def get_limit(self) -> int:
        return self.limit

    def set_limit(self, size: int) -> None:
        self.limit = size

    def free_bytes(self) -> int:
        return 0

    def used_bytes(self) -> int:
        return 1000


def cupy(pool: Pool) -> SimpleNamespace:
    runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError, memGetInfo=lambda: (9000, 9999))
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), get_default_memory_pool=lambda: pool)


@pytest.mark.parametrize("before", [None, "5000"])
def test_the_pool_of_this_process_is_limited_and_what_was_before_comes_back(before, monkeypatch):
    pool = Pool(int(before or 0))
    toy = cupy(pool)
    monkeypatch.setitem(sys.modules, "cupy", toy)
    monkeypatch.delenv(VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VARIABLE, before)

    def fails() -> None:
        with pool_of(3000):
            assert os.environ[VARIABLE] == "3000"
            assert pool.limit == 3000
            assert device.free_memory(toy) == 2000  # type: ignore[arg-type]
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert os.environ.get(VARIABLE) == before
    assert pool.limit == int(before or 0)


def test_cupy_is_not_loaded_for_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with limited("16GB"):
        assert "cupy" not in sys.modules
        assert os.environ[VARIABLE] == str(13 * 10**9)


def test_without_a_limit_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "50%")
    with limited(None):
        assert os.environ[VARIABLE] == "50%"

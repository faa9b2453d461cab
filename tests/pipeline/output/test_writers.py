"""The choice of the writer: one thread for a core, several threads or the GPU for a GPU, and no silent fallback."""

from types import SimpleNamespace

import pytest

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.output import writers
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.output.part_writer import PartWriter, writing_threads
from bicliques.pipeline.output.writers import ParallelWriter, open_writer
from bicliques.pipeline.process import cores
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.platform import CORES


@pytest.fixture
def cudf(monkeypatch):
    monkeypatch.setattr(writers, "why_no_cudf", lambda: None)
    monkeypatch.setattr(writers, "CudfParquet", lambda tables, provenance: SimpleNamespace(threads=1))
    yield
    writers.forget()


def test_a_core_writes_with_its_own_thread(tmp_path):
    assert isinstance(open_writer(tmp_path, 0, None, CORES), PartWriter)


@pytest.mark.usefixtures("cudf")
@pytest.mark.parametrize(("where", "kind"), [("gpu", DeviceWriter), ("cpu", ParallelWriter), ("auto", DeviceWriter)])
def test_a_gpu_writes_unless_the_cpu_was_asked_for(tmp_path, where, kind):
    out = open_writer(tmp_path, 0, None, CUDA, where)
    assert isinstance(out, kind)
    assert out.on_device == (kind is DeviceWriter)
    out.discard()


def test_without_cudf_the_host_writes_unless_the_gpu_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "why_no_cudf", lambda: "pylibcudf cannot be imported (pip install 'bicliques[gpu]')")
    assert isinstance(open_writer(tmp_path, 0, None, CUDA), ParallelWriter)
    with pytest.raises(ResourceError, match=r"cuDF cannot write the bicliques: pylibcudf .*; choose write_on='cpu'"):
        open_writer(tmp_path, 0, None, CUDA, "gpu")


def test_workers_of_a_machine_share_its_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(64)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert writing_threads() == 16
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,0,1,2,4,5,6,7")
    assert writing_threads() == 8
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,0, -1,")  # what names no device has no worker
    assert writing_threads() == 16
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,0,1,2,4,5,6,7,-1")
    assert writing_threads() == 8
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    assert writing_threads() == 1


def test_a_worker_that_sees_one_gpu_is_told_how_many_share_the_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(64)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    monkeypatch.setattr(cores, "_sharing", 1)
    cores.share_cores(8)
    assert writing_threads() == 8

"""Copies through page-locked buffers, with a device that copies as late as it may."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bicliques.kernels.gpu import buffers
from bicliques.kernels.gpu.buffers import Staging


class Toy:
    """A device. Its copies are done in order, and none before an event behind it is waited for."""

    def __init__(self):
        self.waiting = []
        self.cuda = SimpleNamespace(
            get_current_stream=lambda: "stream", alloc_pinned_memory=bytearray, Event=self.event
        )

    def empty(self, n: int, dtype) -> OnToy:
        return OnToy(np.zeros(n, dtype), self)

    def ascontiguousarray(self, array: OnToy) -> OnToy:
        return OnToy(np.ascontiguousarray(array.values), self)

    def event(self, disable_timing: bool):
        recorded = [0]

        def record(stream: str):
            recorded[0] = len(self.waiting)

        def synchronize():
            for k in range(recorded[0]):
                self.waiting[k]()
                self.waiting[k] = lambda: None

        return SimpleNamespace(record=record, synchronize=synchronize)


class OnToy:
    """An array of the device."""

    def __init__(self, values: np.ndarray, toy: Toy):
        self.values, self.toy = values, toy
        self.shape, self.dtype = values.shape, values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, some) -> OnToy:
        return OnToy(self.values[some], self.toy)

    def view(self, dtype) -> OnToy:
        return OnToy(self.values.view(dtype), self.toy)

    def set(self, host: np.ndarray, stream: str):
        self.toy.waiting.append(lambda: np.copyto(self.values, host))

    def get(self, stream: str, out: np.ndarray, blocking: bool):
        assert not blocking
        self.toy.waiting.append(lambda: np.copyto(out, self.values))


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(buffers, "_BYTES", 80)


@pytest.mark.parametrize("n", [0, 1, 10, 11, 20, 21, 55])
def test_an_array_comes_back_as_it_was(n):
    toy = Toy()
    through = Staging(toy)
    for k in range(2):  # the second time the buffers are used already
        values = np.random.default_rng(k).integers(0, 1 << 60, n)
        assert through.download(OnToy(values, toy)).tolist() == values.tolist()
        device = through.upload(values)
        for copy in toy.waiting:
            copy()
        toy.waiting.clear()
        assert device.values.dtype == values.dtype
        assert device.values.tobytes() == values.tobytes()


def test_every_second_entry_is_copied():
    toy, values = Toy(), np.arange(60)
    assert Staging(toy).download(OnToy(values[::2], toy)).tolist() == values[::2].tolist()

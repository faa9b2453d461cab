"""A run in bands: the scheduler never mixes them, and what a slice leaves over stays in its band."""

import numpy as np
import pytest

from bicliques.pipeline.dealing.schedule import Finish, Policy, Scheduler, Start
from bicliques.schemas.manifest import PLAN


@pytest.mark.parametrize("slots", [1, 3])
def test_a_slice_takes_nodes_of_one_band(slots: int) -> None:
    """The plan has three bands, and what a slice leaves is of its band."""
    bands = np.repeat([2, 0, 1], 20).tolist()
    machine = Scheduler(Policy(), 0, 60.0)
    ranges = [(0, 20), (20, 40), (40, 60)]
    machine.add_source(PLAN, np.ones(60), ranges, is_plan=True, band_at=bands.__getitem__)
    of_slice: dict[int, int] = {}
    waiting, turn, done = machine.set_slots(slots), 0, 0
    while not isinstance(waiting[-1] if waiting else None, Finish):
        starts = [start for start in waiting if isinstance(start, Start)]
        waiting = []
        for start in starts:
            taken = {
                bands[node] if source == PLAN else of_slice[source]
                for source, *range_ in start.took
                for node in range(*range_)
            }
            assert len(taken) == 1
            (of_slice[start.slice],) = taken
            turn += 1
            left = np.ones(turn % 3) if turn < 30 else np.ones(0)
            waiting += machine.returned(start.slice, 0.1, 0, left, of_slice[start.slice])
            done += 1
    assert done > 3
    assert set(of_slice.values()) == {0, 1, 2}

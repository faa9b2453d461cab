"""The scheduler keeps up to 1,000 simulated workers busy, with work as uneven as that of recorded roots."""

import json

import numpy as np
import pytest

from benchmarks.simulate import RECORDED, draw
from benchmarks.simulation import Nodes, World, simulate, simulate_apart
from bicliques.pipeline.dealing.schedule import Policy, Scheduler
from bicliques.schemas.manifest import PLAN

RECORDINGS = json.loads(RECORDED.read_text())


@pytest.mark.parametrize(
    ("workers", "seconds", "least"),
    [(2, 60, 0.88), (4, 20, 0.88), (64, 120, 0.88), pytest.param(1000, 240, 0.8, marks=pytest.mark.exhaustive)],
)
def test_workers_are_busy_and_the_driver_keeps_up(workers: int, seconds: float, least: float) -> None:
    nodes = draw(RECORDINGS["bookcrossing_core"], 20 * workers, seconds * workers, seed=3)
    world = World(workers)
    found = simulate(nodes, world, Policy(event_seconds=world.commit_s), seed=3)
    assert found.efficiency > least
    assert found.driver_busy < 0.95


@pytest.mark.exhaustive
def test_a_driver_without_pacing_is_less_efficient() -> None:
    nodes = draw(RECORDINGS["bookcrossing_core"], 5120, 30 * 256, seed=3)
    minded = simulate(nodes, World(256), Policy(event_seconds=0.003), seed=3)
    overrun = simulate(nodes, World(256), Policy(event_seconds=0.0), seed=3)
    assert minded.efficiency > 1.2 * overrun.efficiency


def test_drivers_that_share_workers_serve_them_faster_than_one() -> None:
    nodes = draw(RECORDINGS["youtube"], 5120, 10 * 256, seed=3)
    world, policy = World(256, commit_s=0.01), Policy(event_seconds=0.01)
    alone = simulate(nodes, world, policy, seed=3)
    least, most = simulate_apart(nodes, world, policy, drivers=8)
    assert alone.efficiency < least < most < 1


def test_workers_whose_threads_share_slices_need_far_fewer_of_them() -> None:
    nodes = draw(RECORDINGS["bookcrossing_core"], 1280, 20 * 64, seed=3)
    policy = Policy(event_seconds=0.003)
    alone = simulate(nodes, World(64), policy, seed=3)
    shared = simulate(nodes, World(8, in_hand=1, threads=8), policy.of_sharing(), seed=3)
    assert shared.slices < alone.slices / 4
    assert shared.efficiency > 0.75


def test_a_slice_that_its_worker_ended_at_once_says_nothing_of_the_rate() -> None:
    machine = Scheduler(Policy(), 0, 1000.0)
    machine.add_source(PLAN, np.ones(1000), [(0, 1000)], is_plan=True)
    machine.set_slots(4)
    machine.returned(0, 1.0, 0, np.empty(0))
    before = machine.seconds_left
    machine.returned(1, 1e-4, 0, np.ones(int(machine.weight(1))))
    assert machine.seconds_left == pytest.approx(before, rel=0.2)


def test_lost_workers_cost_their_slices_and_no_work() -> None:
    nodes = draw(RECORDINGS["youtube"], 4000, 20 * 50, seed=4)
    world = World(50, lost_rate=0.03)
    found = simulate(nodes, world, Policy(event_seconds=world.commit_s, attempts=10), seed=4)
    assert found.retries > 5
    assert found.efficiency > 0.5


def test_a_root_with_half_of_the_work_is_shared_by_all_workers() -> None:
    """Nobody can know the root before, because its weight is like that of any other."""
    rng = np.random.default_rng(5)
    work = rng.pareto(1.5, 2000) + 0.01
    work[700] = work.sum()
    nodes = Nodes(np.ones(2000) + rng.random(2000), work * 400 / work.sum())
    found = simulate(nodes, World(8), Policy(event_seconds=0.01), seed=5)
    assert found.efficiency > 0.8

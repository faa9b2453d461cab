"""The ledger of a run, as it is read again."""

from pathlib import Path

import numpy as np

from bicliques.pipeline.run.ledger import Ledger
from bicliques.schemas.manifest import PLAN
from bicliques.schemas.work import Subtrees
from tests.support.runs import ledger_entry, load_ledger, prepared_run, random_edges

EDGES = random_edges(40, 30, 0.3, 4)


def test_an_entry_is_looked_at_after_those_that_it_took_from(tmp_path: Path) -> None:
    """Files are found in the order of their names, in which 10 is before 2."""
    run = prepared_run(tmp_path, EDGES)
    run.ledger.mkdir(exist_ok=True)
    ledger = load_ledger(run.path)
    ledger.commit(ledger_entry(2, (PLAN, 0, 1), n_left_over=2), Subtrees.of_roots(np.array([3, 1])).to_bytes())
    ledger.commit(ledger_entry(10, (2, 0, 1)), b"")
    surveyed, problems = Ledger.survey(run, ledger.job, ledger.n_plan)
    assert (sorted(surveyed.entries), problems) == ([2, 10], {})

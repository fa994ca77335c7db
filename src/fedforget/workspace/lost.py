"""Lost: the run again as it was, those that were lost on the way included.

Who was lost is a condition of a run, not a function of its seed; the ledger knows of whom and when.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..federation import Cohort, FitResult, FitTask, Place
from ..manifest import RoundRow


@dataclass(frozen=True)
class AsRecorded:
    """The cohort, without whom the recorded rounds lost."""

    inner: Cohort
    rows: Mapping[Place, RoundRow]

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        return self.inner.fit([task for task in tasks if not self._lost(task)])

    def _lost(self, task: FitTask) -> bool:
        row = self.rows.get(task.place)
        return row is not None and any(a.lost and a.client == task.client for a in row.absent)

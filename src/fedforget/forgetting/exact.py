"""Exact forgetting (X1): restart from the checkpoint before the first round any leaver took part in.

The rounds before never saw a leaver, and every draw after is a pure function of who is still there, so what
comes out is bit for bit the run the leavers never joined.
"""

from collections.abc import Iterator

from ..federation import Averaging, Cohort, Kind, Learner, Round, Settings
from .rebuild import Rebuild, run


def exact(cohort: Cohort, learner: Learner, work: Rebuild, settings: Settings, kind: Kind = "plain") -> Iterator[Round]:
    """Plain training, again, without the leavers; `kind` says so where it is by another solver."""
    return run(cohort, learner, work, Averaging(work.after, settings, kind))

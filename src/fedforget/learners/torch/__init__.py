"""Learners on PyTorch, and the cohort that runs them fast. The only place that imports torch."""

from ...errors import MissingExtra

try:
    from .numerics import require_version
except ModuleNotFoundError as fault:
    raise MissingExtra("the torch learners", "torch") from fault

require_version()

from .cnn import CNN  # noqa: E402
from .cohort import DeviceCohort, PoolCohort, default_workers, open_cohort  # noqa: E402
from .module import Module, Pixels  # noqa: E402
from .nanogpt import NanoGPT  # noqa: E402
from .sgd import SGD  # noqa: E402
from .stacking import Job, Stacking  # noqa: E402

__all__ = [
    "CNN",
    "SGD",
    "DeviceCohort",
    "Job",
    "Module",
    "NanoGPT",
    "Pixels",
    "PoolCohort",
    "Stacking",
    "default_workers",
    "open_cohort",
]

"""Data sets as the command line shows and fetches them."""

from pathlib import Path

from ..datasets import data_root, load
from ..datasets.download import download
from ..datasets.partition import partition
from ..datasets.show import plot, summary
from .progress import Progress
from .reports import DataReport


def describe(
    name: str, root: Path | None, how: str, clients: int, seed: int, fetch: bool, progress: Progress
) -> DataReport:
    """What a data set is, and how it would be dealt to clients; fetched first if asked."""
    if fetch:
        download(name, root, progress=progress)
    dataset = load(name, root)
    parts = partition(dataset, how, clients, seed) if how else None
    about = summary(dataset, parts, partition=how, seed=seed)
    return DataReport(name, str(data_root(root)), about, plot(about))

"""The data sets of the paper, and the digits that come with scikit-learn: `load(name)` reads one.

How a data set is dealt to clients stands in `partition`, how it is fetched in `download`, how a
partition looks in `show`. Nothing here needs more than NumPy and scikit-learn.
"""

from .catalog import NAMES, load, outline
from .dataset import Dataset
from .files import data_root

__all__ = ["NAMES", "Dataset", "data_root", "load", "outline"]

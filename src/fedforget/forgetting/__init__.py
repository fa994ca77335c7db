"""Ways of forgetting: exact (X1), clean (X3), calibrated (A), and the paper's FR, FE, RR, SE as rows of one table."""

from .calibrated import Calibration
from .guarantee import Guarantee, GuaranteeClass
from .methods import METHODS, Estimate, Method, assess, estimate, forget, method_named, prepare_work, standing
from .past import Made, Measures, Past, Recorded
from .rebuild import Rebuild, lineage

__all__ = [
    "METHODS",
    "Calibration",
    "Estimate",
    "Guarantee",
    "GuaranteeClass",
    "Made",
    "Measures",
    "Method",
    "Past",
    "Rebuild",
    "Recorded",
    "assess",
    "estimate",
    "forget",
    "lineage",
    "method_named",
    "prepare_work",
    "standing",
]

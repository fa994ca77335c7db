"""One Hypothesis profile for all: the same examples on every machine, and no clock in the verdict."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fedforget",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("fedforget")

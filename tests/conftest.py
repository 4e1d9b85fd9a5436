"""Hypothesis profiles: `default` for every run, `soak` (HYPOTHESIS_PROFILE=soak) for long hunts, `few` for generated queries
whose kernels run as plain Python. Arrays that kernels must not touch any more are checked in every test.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ["CQELS_CHECK_MEMORY"] = "1"

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile("default", max_examples=40, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("few", max_examples=12, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

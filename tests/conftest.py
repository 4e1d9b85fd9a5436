"""Hypothesis profiles: `default` for every run, `soak` (HYPOTHESIS_PROFILE=soak) for long hunts."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile("default", max_examples=40, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

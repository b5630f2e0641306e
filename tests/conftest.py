"""For all tests: no example has a clock. How fast something is, is for benchmarks/ to say."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no clock", settings.default, deadline=None)
settings.load_profile("no clock")

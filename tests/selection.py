"""Which parameters of a test run by default."""

import pytest


def all_but(quick, values):
    """Return `values` as parameters of a test, those that are not in `quick` marked as slow."""
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]

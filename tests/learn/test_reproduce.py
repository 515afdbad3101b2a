"""Every claim of every experiment of the lectures holds with seed 1."""

import pytest

from regard.studies.reproduce.catalog import experiments
from regard.studies.reproduce.running import reproduce

pytestmark = pytest.mark.learn


@pytest.mark.parametrize("name", experiments())
def test_claims_hold(name, tmp_path):
    findings = reproduce(name, tmp_path, seed=1)
    assert [(one.text, one.outcome) for one in findings.claims if not one.holds] == []

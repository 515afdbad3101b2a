"""The claims of every experiment of the lectures hold with seed 1, except those known not to."""

import pytest

from regard.studies.reproduce.catalog import experiments
from regard.studies.reproduce.running import reproduce
from tests.architecture.lecture_table import read_results

pytestmark = pytest.mark.learn


@pytest.mark.parametrize("name", experiments())
def test_claims_hold_as_documented(name, tmp_path):
    documented = {claim["claim"]: claim["holds"] for claim in read_results()[name]["claims"]}
    findings = reproduce(name, tmp_path, seed=1)
    assert {claim.text: bool(claim.holds) for claim in findings.claims} == documented

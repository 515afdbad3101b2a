"""A fixed context brings like meanings together, as figure 2 of Sutskever et al. 2014 shows."""

import pytest

from regard.studies.reproduce.findings import reproduce

pytestmark = pytest.mark.learn


def test_like_meanings_lie_close_together(tmp_path):
    findings = reproduce("sentence-vectors", tmp_path, seed=1)
    assert findings.is_as_expected, findings.numbers

"""Sentence vectors cluster by meaning, as in figure 2 of Sutskever et al. 2014."""

import pytest

from regard.studies.reproduce.findings import reproduce

pytestmark = pytest.mark.learn


def test_sentences_with_the_same_meaning_are_close(tmp_path):
    findings = reproduce("sentence-vectors", tmp_path, seed=1)
    assert findings.is_as_expected, findings.numbers

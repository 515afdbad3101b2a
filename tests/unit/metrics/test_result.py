import json

import pytest

from regard.core.errors import DataError
from regard.metrics.result import Result, check_references
from regard.metrics.table import METRICS


def test_str_has_name_value_interval_and_signature():
    result = Result("BLEU", 37.9, "nrefs:1|case:mixed", interval=(36.8, 39.0))
    assert str(result) == "BLEU 37.90 ± 1.1  nrefs:1|case:mixed"


def test_str_of_a_fraction_has_four_digits():
    assert str(Result("AER", 0.06814, "average:corpus")) == "AER 0.06814  average:corpus"


def test_to_dict_omits_an_empty_detail():
    assert Result("WER", 5.0, "s").to_dict() == {"name": "WER", "value": 5.0, "signature": "s"}


def test_to_dict_survives_json():
    values = Result("BLEU", 1.0, "s", interval=(0.5, 1.5), detail={"x": 2.0}).to_dict()
    assert json.loads(json.dumps(values)) == values


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_refuses_an_empty_list(name):
    with pytest.raises(DataError, match="`hypotheses` must hold at least one sentence"):
        METRICS[name]([], [])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_reports_unequal_lengths(name):
    with pytest.raises(DataError, match="equal length, but there are 2 and 1"):
        METRICS[name](["a", "b"], [["a"]])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_signature_of_key_value_pairs(name):
    signature = METRICS[name](["a b c d e"], [["a b c d e"]]).signature
    assert all(part.count(":") == 1 for part in signature.split("|"))


def test_references_that_are_a_string_are_refused():
    with pytest.raises(DataError, match=r"`references\[1\]` must be a list of sentences.*'b'"):
        check_references(["a", "b"], [["a"], "b"])


def test_a_hypothesis_without_reference_is_refused():
    with pytest.raises(DataError, match=r"`references\[0\]` must hold at least one sentence"):
        check_references(["a"], [[]])

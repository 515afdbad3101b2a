"""Experiments of the catalogue, and the results that running one writes."""

import pytest

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.core.tables import resolve
from regard.studies.reproduce.catalog import experiments
from regard.studies.reproduce.findings import RESULTS
from regard.studies.reproduce.running import reproduce

# The others are run in tests/learn, and their parts are tested beside this file.
MAX_SECONDS = 1
FAST = [name for name, one in experiments().items() if one.seconds <= MAX_SECONDS]


@pytest.mark.parametrize("experiment", experiments().values(), ids=experiments())
def test_experiment_is_described(experiment):
    assert callable(resolve(experiment.function))
    assert experiment.topics and 0 < experiment.seconds <= 180
    assert 10 < len(experiment.summary) <= 90 and len(experiment.description) > 100


@pytest.mark.parametrize("name", FAST)
def test_claims_of_a_fast_experiment_hold(name, tmp_path):
    findings = reproduce(name, tmp_path, seed=1)
    assert findings.claims and findings.plots
    assert [(one.text, one.outcome) for one in findings.claims if not one.holds] == []
    results = read_json(tmp_path / RESULTS)
    assert results["command"] == f"regard reproduce {name} --seed 1"
    assert results["seed"] == 1
    assert {"seconds", "cpu_seconds"} <= {*results}
    for plot in results["plots"]:
        assert (tmp_path / f"{plot}.svg").exists() and (tmp_path / f"{plot}.png").exists()


def test_error_for_an_unknown_name_suggests_a_name(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'nadaraya-watson'"):
        reproduce("nadaraya", tmp_path)

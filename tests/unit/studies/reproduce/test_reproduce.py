import pytest

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.studies.reproduce.findings import RESULTS, reproduce


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """Name and folder of a reproduced experiment."""
    folder = tmp_path_factory.mktemp("reproduced")
    # The others train for minutes: they are tested in tests/learn.
    reproduce("nadaraya-watson", folder, seed=3)
    return "nadaraya-watson", folder


def test_reproduction_is_as_expected(reproduced):
    _, folder = reproduced
    assert all(relation["holds"] for relation in read_json(folder / RESULTS)["relations"])


def test_results_hold_command_and_seed(reproduced):
    name, folder = reproduced
    results = read_json(folder / RESULTS)
    assert results["command"] == f"regard reproduce {name} --seed 3"
    assert results["seed"] == 3


def test_plots_are_named_after_the_experiment(reproduced):
    name, folder = reproduced
    assert (folder / f"{name}.svg").exists()
    assert (folder / f"{name}.png").exists()


def test_error_for_an_unknown_name_suggests_a_name(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'nadaraya-watson'"):
        reproduce("nadaraya", tmp_path)

import pytest

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.studies.reproduce.findings import RESULTS, reproduce


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The name of an experiment, and the folder where it was made again."""
    folder = tmp_path_factory.mktemp("made")
    # The other one trains for minutes: it is made among the tests that learn.
    reproduce("nadaraya-watson", folder, seed=3)
    return "nadaraya-watson", folder


def test_reproduction_is_as_expected(made):
    _, folder = made
    assert all(relation["holds"] for relation in read_json(folder / RESULTS)["relations"])


def test_results_hold_the_command_that_makes_them_again(made):
    name, folder = made
    results = read_json(folder / RESULTS)
    assert results["command"] == f"regard reproduce {name} --seed 3"
    assert results["seed"] == 3


def test_pictures_are_named_after_the_experiment(made):
    name, folder = made
    assert (folder / f"{name}.svg").exists()
    assert (folder / f"{name}.png").exists()


def test_unknown_name_is_refused_with_the_nearest_one(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'nadaraya-watson'"):
        reproduce("nadaraya", tmp_path)

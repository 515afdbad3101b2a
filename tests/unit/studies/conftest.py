import pytest

from regard.core.files import write_json
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs.folder import PREDICTIONS, TEST
from regard.studies.compare.comparison import compare
from tests.fixtures.runs import copy_without_checksums

GERMAN = [
    Example("I know that he reads.", "Ich weiß, dass er liest.", tags=("verb_last",)),
    Example("He comes if she sleeps.", "Er kommt, wenn sie schläft.", tags=("verb_last",)),
    Example("Is it <b>true</b>?", "Ist es wahr?", tags=("question",)),
    Example("We go home.", "Wir gehen nach Hause."),
]
RIGHT = [example.target for example in GERMAN]
WRONG = ["Ich weiß, dass liest er.", "Er kommt.", "<script>alert(1)</script>", RIGHT[3]]


@pytest.fixture
def copy_run(tiny_run, tmp_path):
    """Function that copies the tiny run, optionally with another test set and outputs."""

    def copy(name, examples=None, outputs=None):
        folder = tmp_path / name
        copy_without_checksums(tiny_run.folder, folder)
        if examples is not None:
            write_examples(folder / TEST, examples)
        if outputs is not None:
            write_json(folder / PREDICTIONS, outputs)
        return folder

    return copy


@pytest.fixture
def german(copy_run):
    """Comparison of two runs on four German sentences: one correct, one mostly wrong."""
    folders = [copy_run("right", GERMAN, RIGHT), copy_run("wrong", GERMAN, WRONG)]
    return compare(folders, device="cpu", num_samples=40)

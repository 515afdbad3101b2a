import sys
from pathlib import Path

import pytest

from regard.core.files import write_json
from regard.data.datasets.catalog import DATASETS
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs import folder as runs
from regard.runs.recipes import load_recipe

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def images(monkeypatch):
    """The script, imported as it is started: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import images

    yield images
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == BENCHMARKS:
            del sys.modules[name]


def test_every_run_has_a_recipe_that_takes_its_settings_and_a_data_set(images):
    for plan in images.EXPERIMENTS.values():
        for run in plan(Path("runs")):
            assert load_recipe(run.recipe, run.words).task
            assert run.data[0].partition(":")[0] in DATASETS


def test_every_run_that_is_needed_is_planned(images):
    planned = {
        f"{name}/{run.folder}" for name, plan in images.EXPERIMENTS.items() for run in plan(Path())
    }
    needed = {
        need if "/" in need else f"{name}/{need}"
        for name, plan in images.EXPERIMENTS.items()
        for run in plan(Path())
        for need in run.needs
    }
    assert needed
    assert needed <= planned


def test_captions_are_kept_without_their_photo(images, tmp_path):
    examples = [Example("x.zip/1.jpg", "a dog", references=("the dog",))]
    write_examples(tmp_path / runs.TEST, examples)
    write_json(tmp_path / runs.PREDICTIONS, ["dogs"])
    first = images.Run("xu2015", "xu2015", ("flickr8k",))
    found = images._of_captions(first, tmp_path)
    assert found == {"samples": [{"references": ["a dog", "the dog"], "answer": "dogs"}]}


def test_a_sentence_is_kept_without_its_photo(images, tmp_path):
    write_examples(tmp_path / runs.TEST, [Example(("a dog", "x.zip/1.jpg"), "ein Hund")])
    write_json(tmp_path / runs.PREDICTIONS, ["Hund"])
    first = images.Run("multimodal", "multimodal", ("multi30k:images",))
    found = images._of_translations(first, tmp_path)
    assert found == {"samples": [("a dog", "ein Hund", "Hund")]}


def test_runs_tested_on_other_sentences_are_not_compared(images):
    here, there = [Example("a", "b")], [Example(("a", "x.jpg"), "c")]
    images._check_same([here, [Example(("a", "x.jpg"), "b")]])
    with pytest.raises(SystemExit, match="tested on different sentences"):
        images._check_same([here, there])


def test_differences_are_told_for_each_seed_and_for_all(images):
    right = "ein alter Hund läuft durch hohes Gras"
    answers, references = [right] * 10, [[right]] * 10
    worse = {1: ["ein alter Hund läuft durch Sand"] * 10, 2: answers}
    rows = images._compare("no image", worse, {1: answers, 2: answers}, references=references)
    first, second, overall = (row["differences"]["bleu"]["value"] for row in rows)
    assert [row["seeds"] for row in rows] == ["1", "2", "all"]
    assert first > 0
    assert second == 0
    assert overall == pytest.approx(first / 2)

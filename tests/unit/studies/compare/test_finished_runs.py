from dataclasses import replace

import pytest

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import read_json, write_json
from regard.data.example import Example
from regard.runs.folder import METRICS
from regard.runs.saved.config import CONFIG
from regard.studies.compare.comparison import compare
from regard.studies.compare.finished_runs import read_finished_runs
from regard.studies.compare.sections import comparison_sections

PAIRS = [Example("a b", "b a"), Example("c d", "d c", references=("c",))]
OUTPUTS = ["b a", "x"]


def test_finished_run_holds_decoder_outputs_and_metrics(copy_run, tiny_run):
    first, _ = read_finished_runs([tiny_run.folder, copy_run("other")])
    assert first.decoder == "bahdanau"
    assert first.outputs == tiny_run.evaluation.outputs
    assert first.metrics["parameters"] == tiny_run.predictor.num_parameters


def test_references_include_target_and_further_references(copy_run):
    first, _ = read_finished_runs([copy_run(name, PAIRS, OUTPUTS) for name in "ab"])
    assert first.references == [["b a"], ["d c", "c"]]


def test_run_is_named_after_its_folder(copy_run):
    runs = read_finished_runs([copy_run("a"), copy_run("b")])
    assert [run.name for run in runs] == ["a", "b"]


def test_ambiguous_names_are_full_paths(copy_run):
    folders = [copy_run("a/run"), copy_run("b/run"), copy_run("c")]
    assert [run.name for run in read_finished_runs(folders)] == [*map(str, folders[:2]), "c"]


def test_single_run_is_refused(tiny_run):
    with pytest.raises(
        ConfigError, match=r"A comparison needs at least two run folders, but has 1\."
    ):
        read_finished_runs([tiny_run.folder])


def test_same_run_twice_is_refused(copy_run):
    folder = copy_run("a")
    with pytest.raises(ConfigError, match=r"a is given twice\. Name each run once\."):
        read_finished_runs([folder, folder / ".." / "a"])


def test_missing_folder_is_refused(tiny_run, tmp_path):
    with pytest.raises(CheckpointError, match="is not a folder"):
        read_finished_runs([tiny_run.folder, tmp_path / "absent"])


def test_unfinished_run_is_refused(tiny_run, copy_run):
    folder = copy_run("a")
    (folder / METRICS).unlink()
    with pytest.raises(CheckpointError, match=r"a is not finished: metrics.json is missing"):
        read_finished_runs([tiny_run.folder, folder])


def test_wrong_number_of_predictions_is_refused(tiny_run, copy_run):
    folder = copy_run("a", outputs=["x"])
    with pytest.raises(CheckpointError, match="a has 1 predictions for 30 test sentences"):
        read_finished_runs([tiny_run.folder, folder])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (Example("c e", "d c", references=("c",)), "source of sentence 2 is 'c d' .*but 'c e'"),
        (Example("c d", "d", references=("c",)), "reference of sentence 2 is 'd c' .*but 'd'"),
        (Example("c d", "d c"), r"further references of sentence 2 is \('c',\) .*but \(\)"),
    ],
)
def test_different_test_sets_are_refused_with_the_first_difference(copy_run, changed, message):
    folders = [copy_run("a", PAIRS, OUTPUTS), copy_run("b", [PAIRS[0], changed], OUTPUTS)]
    with pytest.raises(DataError, match=f"a and .*b were tested on different sentences.*{message}"):
        read_finished_runs(folders)


@pytest.mark.parametrize("tags", [(), ("verb_last",), ("",), ("b", "c", "d")])
def test_runs_with_different_tags_have_the_groups_of_the_first(copy_run, tags):
    others = [replace(example, tags=tags) for example in PAIRS]
    tagged = [replace(example, tags=("a",)) for example in PAIRS]
    folders = [copy_run("a", tagged, OUTPUTS), copy_run("b", others, OUTPUTS)]
    first, second = compare(folders, device="cpu", num_samples=40).runs
    assert [group.name for group in first.by_tag] == ["a"]
    assert [group.name for group in second.by_tag] == ["a"]
    assert second.verbs is None


def test_verbs_are_compared_if_only_the_first_run_has_tags(copy_run):
    pairs = [Example("a b", "Ich weiß, dass er liest.")]
    tagged = [replace(example, tags=("verb_last",)) for example in pairs]
    outputs = [example.target for example in pairs]
    folders = [copy_run("a", tagged, outputs), copy_run("b", pairs, outputs)]
    comparison = compare(folders, device="cpu", num_samples=40)
    assert [scored.verbs.value for scored in comparison.runs] == [0, 0]
    assert "Verbs at" in comparison_sections(comparison)[-1].title


def test_different_sizes_of_test_sets_are_refused(copy_run):
    folders = [copy_run("a", PAIRS, OUTPUTS), copy_run("b", PAIRS[:1], OUTPUTS[:1])]
    with pytest.raises(DataError, match=r"a was tested on 2 sentences, but .*b on 1\. Runs can be"):
        read_finished_runs(folders)


def test_run_of_another_task_is_refused(tiny_run, copy_run):
    folder = copy_run("labels")
    config = read_json(folder / CONFIG)
    write_json(folder / CONFIG, {**config, "recipe": {"task": "classification"}})
    with pytest.raises(
        ConfigError, match=r"but \S+labels is one for 'classification'\. Its metrics are in metrics"
    ):
        read_finished_runs([tiny_run.folder, folder])

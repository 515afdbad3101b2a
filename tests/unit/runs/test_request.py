import re
from dataclasses import replace
from pathlib import Path

import pytest

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import read_json, write_json
from regard.runs.request import Request
from regard.tasks.generation.recipe import DataConfig
from regard.tasks.reading import read_pairs, read_split


def write_pairs(path, names):
    path.write_text("".join(f"{name} x\t{name} y\n" for name in names), encoding="utf-8")
    return str(path)


@pytest.fixture
def pairs(tmp_path):
    """A file of a hundred pairs, `source0 x` … `source99 x`."""
    return write_pairs(tmp_path / "pairs.tsv", [f"source{number}" for number in range(100)])


def splits_of(request, seed):
    return read_pairs(request.data, request.valid, request.test, config=DataConfig(seed=seed))


def sources(examples):
    return {example.source for example in examples}


def test_new_folder_is_accepted(tmp_path):
    Request(data=("copy",), out=tmp_path / "new").check_folder()


def test_folder_with_other_files_is_accepted(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    Request(data=("copy",), out=tmp_path).check_folder()


def test_folder_with_a_run_is_refused_with_the_available_options(tiny_run):
    with pytest.raises(
        ConfigError,
        match=r"already holds a run\. .*\(--resume\).*\(--out\); .*`is_forced`",
    ):
        Request(data=("copy",), out=tiny_run.folder).check_folder()


@pytest.mark.parametrize("option", ["is_resumed", "is_forced"])
def test_folder_with_a_run_is_accepted_to_resume_or_replace(tiny_run, option):
    Request(data=("copy",), out=tiny_run.folder, **{option: True}).check_folder()


def test_resuming_without_a_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"holds no run to resume\. Leave out --resume\."):
        Request(data=("copy",), out=tmp_path, is_resumed=True).check_folder()


def test_out_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"`--out` must be a folder, but .*taken is a file\."):
        Request(data=("copy",), out=path).check_folder()


def test_file_is_split_so_that_no_source_is_shared(pairs):
    splits = splits_of(Request(data=(pairs,)), seed=0)
    sides = [sources(side) for side in (splits.train, splits.valid, splits.test)]
    assert [len(side) for side in sides] == [90, 5, 5]
    assert len(set.union(*sides)) == 100


def test_given_test_data_is_not_split_from_the_training_data(pairs, tmp_path):
    test = write_pairs(tmp_path / "test.tsv", ["other0", "other1"])
    splits = splits_of(Request(data=(pairs,), test=(test,)), seed=0)
    assert sources(splits.test) == {"other0 x", "other1 x"}
    assert (len(splits.train), len(splits.valid)) == (95, 5)


def test_given_validation_and_test_data_keep_the_training_data_whole(pairs, tmp_path):
    valid = write_pairs(tmp_path / "valid.tsv", ["other0"])
    test = write_pairs(tmp_path / "test.tsv", ["other1"])
    splits = splits_of(Request(data=(pairs,), valid=(valid,), test=(test,)), seed=0)
    assert len(splits.train) == 100
    assert splits.note == "validation and test data as given"


def test_data_set_keeps_its_own_split():
    splits = splits_of(Request(data=("copy:50",)), seed=0)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (50, 500, 500)


def test_given_validation_data_replaces_that_of_a_data_set(tmp_path):
    valid = write_pairs(tmp_path / "valid.tsv", ["other"])
    splits = splits_of(Request(data=("copy:50",), valid=(valid,)), seed=0)
    assert (len(splits.valid), len(splits.test)) == (1, 500)


def test_training_pair_whose_source_is_held_out_is_dropped_and_counted(pairs, tmp_path):
    valid = write_pairs(tmp_path / "valid.tsv", ["Source3", "other"])
    test = write_pairs(tmp_path / "test.tsv", ["source4 "])
    splits = splits_of(Request(data=(pairs,), valid=(valid,), test=(test,)), seed=0)
    assert sources(splits.train).isdisjoint({"source3 x", "source4 x"})
    assert splits.note.endswith("; 2 training pairs left out, their source is held out")


def test_training_data_that_is_all_held_out_is_refused(pairs):
    with pytest.raises(
        DataError, match=r"Nothing is left to train on: all 100 training pairs .* test data\."
    ):
        splits_of(Request(data=(pairs,), valid=(pairs,), test=(pairs,)), seed=0)


def test_three_files_for_a_side_are_refused():
    with pytest.raises(
        ConfigError,
        match=r"`--valid` must be one file of pairs or two line-aligned files, but there are 3: "
        r"a, b, c\.",
    ):
        read_split(("a", "b", "c"), "valid", config=DataConfig())


def test_test_part_of_a_data_set_is_read_by_name():
    test = read_split(("copy:20",), "test", config=DataConfig(seed=3))
    assert sources(test) == sources(splits_of(Request(data=("copy:20",)), seed=3).test)


def test_seed_of_the_data_decides_the_split_before_a_recipe_is_chosen(pairs):
    tests = [
        sources(Request(data=(pairs,), settings=(f"data.seed={seed}",)).resolve()[1].test)
        for seed in (0, 0, 5)
    ]
    assert tests[0] == tests[1]
    assert tests[0] != tests[2]


def test_recipe_is_chosen_by_the_data_when_none_is_named(pairs, caplog):
    caplog.set_level("INFO", "regard")
    recipe, _ = Request(data=(pairs,), device="cpu").resolve()
    assert (recipe.data.source.kind, recipe.data.is_joint) == ("bpe", True)
    assert "Recipe: modern-laptop (no GPU; source" in caplog.text
    assert "More pairs" in caplog.text


def test_named_recipe_is_changed_by_overrides(pairs):
    request = Request(data=(pairs,), recipe="cho2014", settings=("train.max_epochs=3",))
    recipe, _ = request.resolve()
    assert (recipe.model.decoder.kind, recipe.train.max_epochs) == ("cho", 3)


def test_resumed_run_keeps_its_recipe_except_for_overrides(reverse_files, tiny_run):
    request = reverse_files.request(tiny_run.folder, recipe=None, is_resumed=True)
    settings = ("train.max_epochs=30",)
    recipe, _ = Request(**{**vars(request), "settings": settings}).resolve()
    assert recipe.train.max_epochs == 30
    assert recipe.model == tiny_run.predictor.recipe.model


def test_run_folder_has_a_default():
    assert Request(data=("copy",)).out == Path("runs/latest")


def test_missing_file_is_named():
    with pytest.raises(DataError, match=re.escape("'absent.tsv' does not exist.")):
        splits_of(Request(data=("absent.tsv",)), seed=0)


def test_single_names_may_be_strings(tmp_path):
    request = Request(
        data=tmp_path / "pairs.tsv",
        valid="valid.tsv",
        test=["a.en", "a.de"],
        settings="train.max_steps=1",
        out="runs/x",
    )
    assert request.data == (str(tmp_path / "pairs.tsv"),)
    assert (request.valid, request.test) == (("valid.tsv",), ("a.en", "a.de"))
    assert request.settings == ("train.max_steps=1",)
    assert request.out == Path("runs/x")


def test_value_that_is_no_name_is_refused():
    with pytest.raises(TypeError, match="`data` must be a string or several, but is 3 .int."):
        Request(data=3)


def test_resuming_with_another_recipe_is_refused(reverse_files, tiny_run):
    request = reverse_files.request(tiny_run.folder, recipe="luong2015", is_resumed=True)
    with pytest.raises(
        ConfigError,
        match=r"`--recipe` cannot change when .* was started with 'bahdanau2015-laptop', but it is "
        r"'luong2015' now\.",
    ):
        replace(request, settings=()).resolve()


def test_resuming_with_the_same_recipe_is_accepted(reverse_files, tiny_run):
    request = reverse_files.request(tiny_run.folder, is_resumed=True)
    assert request.resolve()[0] == tiny_run.predictor.recipe


def test_run_that_was_started_without_a_recipe_is_not_resumed_with_one(
    reverse_files, tiny_run, tmp_path
):
    config = read_json(tiny_run.folder / "config.json")
    write_json(tmp_path / "config.json", {**config, "about": {**config["about"], "recipe": None}})
    request = reverse_files.request(tmp_path, is_resumed=True)
    with pytest.raises(ConfigError, match="was started without --recipe, but it is 'bahdanau2015"):
        request.resolve()

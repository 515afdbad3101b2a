"""Commands on labelled texts and on pairs of texts."""

import json

import pytest

from regard.data.datasets.labelled import generate_opinions

SMALL = (
    "model.encoder.dim=16",
    "model.encoder.num_layers=1",
    "model.encoder.feed_forward_dim=16",
    "train.max_epochs=1",
    "train.precision=fp32",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled texts and pairs of texts as TSV."""
    folder = tmp_path_factory.mktemp("labelled")
    texts = generate_opinions(120, seed=2)
    single = "".join(f"{example.source}\t{example.target}\n" for example in texts)
    pairs = "".join(
        f"{one.source}\t{other.source}\t{'same' if one.target == other.target else 'other'}\n"
        for one, other in zip(texts[:60], texts[60:], strict=True)
    )
    (folder / "single.tsv").write_text(single, encoding="utf-8")
    (folder / "pairs.tsv").write_text(pairs, encoding="utf-8")
    return folder


@pytest.fixture
def run(regard, folder):
    """A run on single texts, trained at its first use."""
    return _train(regard, folder, "single", "sst2-transformer")


@pytest.fixture
def pair_run(regard, folder):
    """A run on pairs, likewise."""
    return _train(regard, folder, "pairs", "sick-transformer")


def _train(regard, folder, name, recipe):
    out = folder / f"run-{name}"
    if not out.exists():
        data = folder / f"{name}.tsv"
        result = regard("train", data, "--recipe", recipe, "--out", out, "--device", "cpu", *SMALL)
        assert result.code == 0, result
        assert result.lines[0].startswith("accuracy ")
        assert "interval:wilson" in result.lines[0]
    return out


def test_labels_of_a_file_are_not_part_of_its_texts(regard, run, pair_run, folder):
    for name, folder_of_run in (("single", run), ("pairs", pair_run)):
        rows = [line.split("\t") for line in (folder / f"{name}.tsv").read_text().splitlines()[:20]]
        labelled = folder / f"labelled-{name}.tsv"
        labelled.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        texts = "".join("\t".join(row[:-1]) + "\n" for row in rows)
        expected = regard("predict", folder_of_run, "--json", stdin=texts).out
        assert regard("predict", folder_of_run, labelled, "--json").out == expected


def test_predict_prints_one_label_per_line(regard, run):
    result = regard("predict", run, stdin="the film is dull\n\nthe plot is fresh\n")
    assert len(result.lines) == 3
    assert result.lines[1] == ""
    assert {result.lines[0], result.lines[2]} <= {"negative", "positive"}


def test_predict_ranks_labels(regard, run):
    result = regard("predict", run, "--nbest", "5", stdin="the film is dull\n")
    rows = [line.split("\t") for line in result.lines]
    assert {label for _, _, label in rows} == {"negative", "positive"}
    assert float(rows[0][1]) >= float(rows[1][1])


def test_line_with_a_tab_is_a_pair(regard, pair_run):
    result = regard("predict", pair_run, "--json", stdin="the film is dull\tthe plot is fresh\n")
    (best,) = json.loads(result.out)["predictions"]
    assert best["text"] in ("same", "other")


@pytest.mark.parametrize("name", ["single", "pairs"])
def test_evaluate_and_score_read_the_same_files_as_train(regard, folder, run, pair_run, name):
    chosen, data = {"single": run, "pairs": pair_run}[name], folder / f"{name}.tsv"
    found = json.loads(regard("evaluate", chosen, data, "--json").out)
    num = 120 if name == "single" else 60
    assert found["num_examples"] == num
    assert sum(sum(row.values()) for row in found["confusion"].values()) == num
    scores = [float(line) for line in regard("score", chosen, data).lines]
    assert len(scores) == num
    assert all(score <= 0 for score in scores)


def test_show_plots_attention_for_the_label(regard, run, tmp_path):
    result = regard("show", run, "the film is not dull", "--target", "positive")
    assert result.lines[:2] == ["positive", "Shown: attention of the pooling"]
    assert any(line.endswith("dull") for line in result.lines)
    for kind in ("svg", "png", "html"):
        path = tmp_path / f"map.{kind}"
        assert regard("show", run, "the film is not dull", "--out", path).code == 0
        assert path.stat().st_size > 500


def test_show_takes_a_pair(regard, pair_run):
    result = regard("show", pair_run, "the film is dull\tthe plot is fresh")
    assert result.lines[1] == "Shown: self-attention"
    assert sum("<eos>" in line for line in result.lines) == 2


def test_init_from_takes_encoder_and_vocabulary(regard, folder, run, tmp_path):
    arguments = ("--recipe", "sst2-bert", "--out", tmp_path / "fine-tuned", "--device", "cpu")
    result = regard(
        "train", folder / "pairs.tsv", *arguments, f"init_from={run}", "train.max_epochs=1"
    )
    assert result.code == 0
    ours, theirs = (
        json.loads((path / "config.json").read_text(encoding="utf-8"))["recipe"]["model"]
        for path in (tmp_path / "fine-tuned", run)
    )
    assert ours["encoder"] == theirs["encoder"]
    assert ours["pooling"] == "mean"


def test_beam_is_refused(refused, run):
    message = refused("predict", run, "--beam", "3", stdin="a\n")
    assert "`--beam` is for models that search" in message


def test_unknown_label_is_refused(refused, run, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("the film is dull\tnegativ\n", encoding="utf-8")
    for command in ("evaluate", "score"):
        message = refused(command, run, path)
        assert "'negativ' is not a label of this model" in message
        assert message.endswith("Did you mean 'negative'?")


@pytest.mark.parametrize(("option", "side"), [("--valid", "validation"), ("--test", "test")])
def test_label_missing_in_training_data_is_refused(refused, folder, tmp_path, option, side):
    path = tmp_path / "held-out.tsv"
    path.write_text("the end is dull\tmixed\n", encoding="utf-8")
    arguments = (option, path, "--recipe", "sst2-transformer", "--out", tmp_path / "run")
    message = refused("train", folder / "single.tsv", *arguments, *SMALL)
    assert f"but 'mixed' is only in the {side} data" in message
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "run").exists()


def test_one_label_only_is_refused(refused, tmp_path):
    path = tmp_path / "one.tsv"
    path.write_text("".join(f"text {n}\tyes\n" for n in range(40)), encoding="utf-8")
    message = refused("train", path, "--recipe", "sst2-cnn", "--out", tmp_path / "run")
    assert "at least two labels to distinguish, but there is only 'yes'" in message
    assert not (tmp_path / "run").exists()


def test_file_without_labels_is_refused(refused, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("just a text\n" * 40, encoding="utf-8")
    message = refused("train", path, "--recipe", "sst2-cnn", "--out", tmp_path / "run")
    assert "line 1, must have 2 or 3 columns, but has 1" in message


def test_unknown_name_in_freeze_is_refused(refused, folder, tmp_path):
    arguments = (
        "--recipe",
        "sst2-transformer",
        "--out",
        tmp_path / "run",
        'train.freeze=["encodr"]',
    )
    message = refused("train", folder / "single.tsv", *arguments, *SMALL)
    assert "Did you mean 'encoder'?" in message
    assert not (tmp_path / "run").exists()


def test_columns_are_refused_for_classifiers(refused, run, folder):
    arguments = ("--columns", "source,target")
    message = refused("evaluate", run, folder / "single.tsv", *arguments)
    assert message == (
        "`--columns` is for models that generate text, but the task of this run is "
        "'classification'. Leave it out."
    )


def test_pairs_of_a_data_set_are_shown_as_columns(regard, data_folder):
    first, second, label = regard("data", "show", "sick", "--num", "1").lines[1].split("\t")
    assert first.startswith("A group of kids") and second.startswith("A group of boys")
    assert label == "neutral"

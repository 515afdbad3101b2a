"""Every verb on labelled texts and on pairs of texts, as a person types it."""

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
        answer = regard("train", data, "--recipe", recipe, "--out", out, "--device", "cpu", *SMALL)
        assert answer.code == 0, answer
        assert answer.lines[0].startswith("accuracy ")
        assert "interval:wilson" in answer.lines[0]
    return out


def test_predict_writes_one_label_a_line(regard, run):
    answer = regard("predict", run, stdin="the film is dull\n\nthe plot is fresh\n")
    assert len(answer.lines) == 3
    assert answer.lines[1] == ""
    assert {answer.lines[0], answer.lines[2]} <= {"negative", "positive"}


def test_predict_ranks_labels(regard, run):
    answer = regard("predict", run, "--nbest", "5", stdin="the film is dull\n")
    rows = [line.split("\t") for line in answer.lines]
    assert {label for _, _, label in rows} == {"negative", "positive"}
    assert float(rows[0][1]) >= float(rows[1][1])


def test_line_with_a_tab_is_a_pair(regard, pair_run):
    answer = regard("predict", pair_run, "--json", stdin="the film is dull\tthe plot is fresh\n")
    (best,) = json.loads(answer.out)["predictions"]
    assert best["text"] in ("same", "other")


@pytest.mark.parametrize("name", ["single", "pairs"])
def test_evaluate_and_score_read_what_train_reads(regard, folder, run, pair_run, name):
    chosen, data = {"single": run, "pairs": pair_run}[name], folder / f"{name}.tsv"
    found = json.loads(regard("evaluate", chosen, data, "--json").out)
    num = 120 if name == "single" else 60
    assert found["num_examples"] == num
    assert sum(sum(row.values()) for row in found["confusion"].values()) == num
    scores = [float(line) for line in regard("score", chosen, data).lines]
    assert len(scores) == num
    assert all(score <= 0 for score in scores)


def test_show_draws_what_counted_for_the_label(regard, run, tmp_path):
    answer = regard("show", run, "the film is not dull", "--target", "positive")
    assert answer.lines[:2] == ["positive", "Shown: attention of the pooling"]
    assert any(line.endswith("dull") for line in answer.lines)
    for kind in ("svg", "png", "html"):
        path = tmp_path / f"map.{kind}"
        assert regard("show", run, "the film is not dull", "--out", path).code == 0
        assert path.stat().st_size > 500


def test_show_takes_a_pair(regard, pair_run):
    answer = regard("show", pair_run, "the film is dull\tthe plot is fresh")
    assert answer.lines[1] == "Shown: self-attention"
    assert sum("<eos>" in line for line in answer.lines) == 2


def test_begun_run_takes_encoder_and_vocabulary(regard, folder, run, tmp_path):
    words = ("--recipe", "sst2-bert", "--out", tmp_path / "begun", "--device", "cpu")
    answer = regard("train", folder / "pairs.tsv", *words, f"init_from={run}", "train.max_epochs=1")
    assert answer.code == 0
    ours, theirs = (
        json.loads((path / "config.json").read_text(encoding="utf-8"))["recipe"]["model"]
        for path in (tmp_path / "begun", run)
    )
    assert ours["encoder"] == theirs["encoder"]
    assert ours["pooling"] == "mean"


def test_beam_is_refused(refused, run):
    message = refused("predict", run, "--beam", "3", stdin="a\n")
    assert "`--beam` is for models that search for their answer" in message


def test_unknown_label_is_refused(refused, run, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("the film is dull\tnegativ\n", encoding="utf-8")
    for verb in ("evaluate", "score"):
        message = refused(verb, run, path)
        assert "'negativ' is not a label of this model" in message
        assert message.endswith("Did you mean 'negative'?")


@pytest.mark.parametrize(("option", "side"), [("--valid", "validation"), ("--test", "test")])
def test_label_that_is_never_learned_is_refused_at_once(refused, folder, tmp_path, option, side):
    path = tmp_path / "held-out.tsv"
    path.write_text("the end is dull\tmixed\n", encoding="utf-8")
    words = (option, path, "--recipe", "sst2-transformer", "--out", tmp_path / "run")
    message = refused("train", folder / "single.tsv", *words, *SMALL)
    assert f"but 'mixed' is only in the {side} data" in message
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "run").exists()


def test_one_label_only_is_refused(refused, tmp_path):
    path = tmp_path / "one.tsv"
    path.write_text("".join(f"text {n}\tyes\n" for n in range(40)), encoding="utf-8")
    message = refused("train", path, "--recipe", "sst2-cnn", "--out", tmp_path / "run")
    assert "at least two labels to tell apart, but there is only 'yes'" in message
    assert not (tmp_path / "run").exists()


def test_file_without_labels_is_refused(refused, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("just a text\n" * 40, encoding="utf-8")
    message = refused("train", path, "--recipe", "sst2-cnn", "--out", tmp_path / "run")
    assert "line 1, must have 2 or 3 columns, but has 1" in message


def test_freezing_what_is_not_there_is_refused(refused, folder, tmp_path):
    words = ("--recipe", "sst2-transformer", "--out", tmp_path / "run", 'train.freeze=["encodr"]')
    message = refused("train", folder / "single.tsv", *words, *SMALL)
    assert "Did you mean 'encoder'?" in message
    assert not (tmp_path / "run").exists()


def test_columns_are_for_models_that_write(refused, run, folder):
    words = ("--columns", "source,target")
    message = refused("evaluate", run, folder / "single.tsv", *words)
    assert message == (
        "`--columns` is for models that write their answer, but the task of this run is "
        "'classification'. Leave it out."
    )


def test_pairs_of_a_data_set_are_shown_as_columns(regard, data_folder):
    first, second, label = regard("data", "show", "sick", "--num", "1").lines[1].split("\t")
    assert first.startswith("A group of kids") and second.startswith("A group of boys")
    assert label == "neutral"

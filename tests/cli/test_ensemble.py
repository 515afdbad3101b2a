"""Commands on ensembles: run folders joined by commas."""

import json
import math

import pytest

from regard.runs.request import Request
from regard.runs.train import train

SETTINGS = (
    "data.batch.max_tokens=200",
    "train.max_epochs=3",
    "train.precision=fp32",
    "validation.metric=loss",
)
KINDS = {
    "bahdanau2015-laptop": ("seed=1", "model.encoder.dim=16", "model.decoder.dim=16"),
    "vaswani2017-tiny": (
        "seed=2",
        "model.encoder.dim=16",
        "model.encoder.feed_forward_dim=16",
        "model.decoder.dim=16",
        "model.decoder.feed_forward_dim=16",
        "data.is_joint=false",
        "model.ties=none",
    ),
    "cho2014-laptop": ("seed=3", "model.encoder.dim=8", "model.decoder.dim=8"),
}
VOCABULARIES = ("data.source.kind=word", "data.target.kind=word")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A recurrent model, a transformer and one without attention, from different seeds."""
    root = tmp_path_factory.mktemp("runs")
    return [
        train(
            Request(
                data=("copy:200",),
                recipe=recipe,
                settings=(*SETTINGS, *VOCABULARIES, *arguments),
                out=root / recipe,
                device="cpu",
            )
        ).folder
        for recipe, arguments in KINDS.items()
    ]


@pytest.fixture
def runs(folders):
    return ",".join(map(str, folders))


def scores(regard, run):
    result = regard("score", run, "copy:200", "--json")
    assert result.code == 0, result.err
    return [json.loads(line)["token_log_probs"] for line in result.lines]


def test_score_is_the_log_of_the_mean_probability(regard, folders, runs):
    alone = [scores(regard, folder) for folder in folders]
    for ours, *theirs in zip(scores(regard, runs), *alone, strict=True):
        means = [sum(map(math.exp, log_probs)) / 3 for log_probs in zip(*theirs, strict=True)]
        assert [math.exp(log_probs) for log_probs in ours] == pytest.approx(means, abs=1e-5)


def test_predict_prints_predictions_for_every_line(regard, runs):
    result = regard("predict", runs, "--nbest", 3, stdin="a b c\n\nb a\n")
    assert result.code == 0, result.err
    assert [line.split("\t")[0] for line in result.lines] == ["1"] * 3 + ["2"] + ["3"] * 3
    sampled = regard("predict", runs, "search.temperature=1", "--prefix", "a", stdin="a b c\n")
    assert sampled.out.startswith("a")


def test_order_of_the_runs_does_not_change_predictions(regard, folders, runs):
    reverse_order = ",".join(map(str, folders[::-1]))
    # Search settings are given, because the defaults are those of the first run.
    limits = ("search.min_length=3", "search.max_extra=5", "search.max_ratio=1")
    arguments = ("--beam", 2, "search.length_penalty=0.5", *limits)
    outputs = [
        regard("predict", run, *arguments, stdin="a b c\nb a\n").out
        for run in (runs, reverse_order)
    ]
    assert outputs[0] == outputs[1]
    assert [len(line.split()) >= 3 for line in outputs[0].splitlines()] == [True, True]


def test_evaluate_prints_every_score(regard, runs):
    result = regard("evaluate", runs, "copy:200", "--beam", 1)
    assert result.code == 0, result.err
    assert result.lines[0].startswith("BLEU ")


def test_show_plots_the_attention_of_all_runs(regard, folders, runs):
    result = regard("show", runs, "a b c", "--target", "a b c")
    assert result.code == 0, result.err
    assert result.lines[0] == "a b c"
    assert len(result.lines) > 4
    alone = regard("show", folders[0], "a b c", "--target", "a b c")
    assert result.out != alone.out


def test_runs_of_other_data_are_refused(refused, folders, tiny_run):
    runs = f"{folders[0]},{tiny_run.folder}"
    for arguments in (("evaluate", runs, "copy:200"), ("predict", runs, "a b")):
        message = refused(*arguments)
        assert f"but {folders[0]} and {tiny_run.folder} have different source and target" in message


def test_missing_run_is_named(refused, folders):
    message = refused("predict", f"{folders[0]},absent", stdin="a\n")
    assert message.startswith("absent is not a folder.")


def test_ensemble_cannot_be_resumed(refused, runs):
    message = refused("train", "copy:200", "--out", runs, "--resume")
    assert message.endswith("holds no run to resume. Leave out --resume.")


def test_init_from_refuses_an_ensemble(refused, runs, tmp_path):
    arguments = ("--recipe", "bahdanau2015-laptop", f"init_from={runs}", "--out", tmp_path / "run")
    message = refused("train", "copy:200", *arguments)
    assert message.startswith(f"{runs} is not a folder.")
    assert not (tmp_path / "run").exists()


def test_ensemble_cannot_be_exported(refused, runs, tmp_path):
    message = refused("export", "hf", runs, "--out", tmp_path / "out")
    assert message.startswith(f"{runs} is not a folder.")
    assert not (tmp_path / "out").exists()


def test_ensemble_cannot_be_compared(refused, folders, runs):
    message = refused("compare", folders[0], runs)
    assert message.startswith(f"{runs} is not a folder.")

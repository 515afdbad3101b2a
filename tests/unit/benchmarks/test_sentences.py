"""The page on autoencoders of sentences, and the script whose results it shows."""

import sys
from pathlib import Path

import pytest

from benchmarks.results.sentences import write
from regard.runs.recipes import load_recipe

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def autoencoders(monkeypatch):
    """The script, imported as it is started: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import autoencoders

    yield autoencoders
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == BENCHMARKS:
            del sys.modules[name]


def result(value, **more):
    return {"name": "score", "value": value, "signature": "how", **more}


def run(name, width, exact, **scores):
    groups = [
        {"name": name, "count": count, "accuracy": exact}
        for name, count in (("≤ 5", 90), ("6–10", 50), ("> 50", 30), ("41–50", 3))
    ]
    return {
        "name": f"{name} {width}",
        "width": width,
        "seed": 1,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "parameters": 2_500_000,
        "command": "regard train tatoeba",
        "training": {"seconds": 90.0},
        "settings": {"data": {"noise": {"drop": 0.1, "swap": 0.2}}},
        "test": {
            "scores": {
                "accuracy": result(exact),
                "bleu": result(50.0),
                "token_accuracy": result(60.0),
                **scores,
            },
            "by_length": groups,
        },
        "samples": [["A cat.", "A cat.", f"A {name}."]] * 8,
        "walks": [["a", "a", "a", "b", "c", "c", "c"]],
        "made_up": [],
    }


@pytest.fixture
def page(tmp_path):
    bound = {
        "elbo": result(-30.0, detail={"reconstruction": -22.0, "per_token": -3.0}),
        "kl": result(8.0, interval=[7.0, 9.0]),
        "active_units": result(12.0),
    }
    variational = run("bowman2016", 16, 5.0, **bound)
    restored = {"corrupted_bleu": result(60.0), "restored_bleu": result(75.0)}
    runs = [
        run("dai2015-autoencoder", 8, 20.0),
        run("dai2015-autoencoder", 16, 40.0),
        run("hill2016", 16, 30.0, **restored),
        {**variational, "made_up": ["I am *here*.", "So am I."]},
    ]
    return write({"experiment": "sentences", "command": "python x.py", "runs": runs}, tmp_path)


def test_every_run_has_its_scores(page, tmp_path):
    assert "| dai2015-autoencoder | 8 | 2.5 M | 20.0 | 50.0 | 60.0 | 1.5 |" in page
    assert "| hill2016 | 16 | 60.0 | 75.0 |" in page
    assert "| bowman2016 | 16 | -30.0 | -22.0 | 8.0 ± 1.0 | -3.00 | 12 of 16 |" in page
    for name in ("sentences-widths.svg", "sentences-lengths.svg"):
        assert (tmp_path / name).exists() and f"({name})" in page


def test_made_up_sentences_are_shown_as_they_are(page):
    assert "With 16 numbers:\n\n- I am \\*here\\*.\n- So am I.\n" in page


def test_a_way_is_shown_through_the_widest_codes_without_standing_still(page):
    assert "### dai2015-autoencoder, 16 numbers\n\n*a* … *c*\n\n- a\n- b\n- c\n" in page
    assert "dai2015-autoencoder, 8 numbers" not in page


def test_every_run_has_a_recipe_that_takes_its_settings(autoencoders):
    planned = autoencoders.EXPERIMENTS["sentences"](Path("runs"))
    assert len({run.folder for run in planned}) == len(planned) == 9
    for run in planned:
        bottleneck = load_recipe(run.recipe, run.words).model.encoder.bottleneck
        assert run.name.endswith(f" {bottleneck.dim}")
        if bottleneck.kind == "variational":
            assert bottleneck.free_bits * bottleneck.dim == autoencoders.FREE_NATS

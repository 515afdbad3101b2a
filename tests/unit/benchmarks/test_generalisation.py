import pytest

from benchmarks.results.generalisation import held_up_to, mean_curve, mean_within, write


def run(model, values, *, problem="reverse", seed=1, count=200):
    curve = [{"length": n, "count": count, "accuracy": value} for n, value in values.items()]
    return {
        "experiment": "rungs",
        "problem": problem,
        "model": model,
        "seed": seed,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "training": {"seconds": 5.0, "steps": 100},
        "test": {"scores": {"accuracy": {"name": "accuracy", "signature": "match:exact"}}},
        "curve": curve,
    }


def page(runs, folder):
    problem = {"trained": [3, 10], "tested": [2, 4, 10, 12], "unit": "letters"}
    value = {
        "experiment": "generalisation",
        "command": "python x.py",
        "problems": {"reverse": problem},
        "runs": runs,
    }
    return write(value, folder)


def test_curves_of_several_seeds_are_averaged():
    runs = [run("a", {2: 100.0, 4: 50.0}), run("a", {2: 50.0, 4: 0.0}, seed=2)]
    assert mean_curve(runs, "reverse", "a") == [(2, 75.0), (4, 25.0)]


def test_a_length_with_few_examples_is_left_out():
    assert mean_curve([run("a", {2: 100.0}, count=19)], "reverse", "a") == []


def test_what_was_not_run_has_no_curve():
    assert mean_curve([run("a", {2: 100.0})], "reverse", "b") == []


def test_a_mean_counts_both_ends():
    assert mean_within([(2, 0.0), (4, 10.0), (6, 30.0), (8, 99.0)], 4, 6) == 20.0


@pytest.mark.parametrize(
    ("values", "last"),
    [
        ([(2, 0.0), (4, 95.0), (10, 90.0), (12, 10.0)], 10),
        ([(4, 95.0), (10, 80.0), (12, 99.0)], 4),
        ([(4, 89.9), (10, 100.0)], 0),
    ],
)
def test_a_model_holds_up_to_the_length_before_its_first_fall(values, last):
    assert held_up_to(values, (3, 10)) == last


def test_the_page_says_who_holds_longest_and_how_right_each_is(tmp_path):
    good = run("good", {2: 0.0, 4: 100.0, 10: 98.0, 12: 95.0})
    bad = run("bad", {2: 50.0, 4: 100.0, 10: 90.0, 12: 5.0})
    text = page([bad, good], tmp_path)
    assert "| reverse | 3–10 | 12 | 12 | good |" in text
    assert "| good | 99.0 / 95.0 | 99.0 / 95.0 |" in text
    assert "reverse of 2 letters: bad 50 %, good 0 %." in text


def test_the_page_draws_a_picture_that_it_shows(tmp_path):
    text = page([run("a", {4: 1.0, 12: 2.0})], tmp_path)
    assert "(generalisation-rungs-reverse.svg)" in text
    assert ">trained</text>" in (tmp_path / "generalisation-rungs-reverse.svg").read_text()


def test_the_page_says_so_if_none_holds(tmp_path):
    text = page([run("a", {4: 1.0, 12: 2.0})], tmp_path)
    assert "| reverse | 3–10 | 12 | – | none |" in text
    assert "Shorter than in training" not in text


def test_the_page_does_not_list_who_holds_if_all_do(tmp_path):
    runs = [run(name, {4: 99.0, 12: 2.0}) for name in ("a", "b")]
    assert "| reverse | 3–10 | 12 | 4 | all |" in page(runs, tmp_path)

import re

import pytest

from benchmarks.results.longer import write_dialogue, write_questions, write_summaries
from benchmarks.results.parts import changes

MAP = {
    "source": "a tool",
    "target": "tool",
    "kind": "copying",
    "rows": ["tool 0.80"],
    "columns": ["a", "tool"],
    "weights": [[0.1, 0.7]],
}
SAMPLES = [["A <b>tool</b>, it_is.", "tool", "a tool"]]


def result(value, interval=None):
    found = {"name": "score", "value": value, "signature": "how"}
    return {**found, "interval": interval} if interval else found


def run(name, scores, *, seed=1, metric="rougeL", **more):
    return {
        "name": name,
        "seed": seed,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "parameters": 2_500_000,
        "command": f"regard train x seed={seed} train.max_steps=5",
        "training": {"seconds": 90.0},
        "settings": {"validation": {"metric": metric}},
        "journal": [{"step": 10, metric: 1.0}, {"step": 20, metric: 2.0}],
        "test": {"scores": scores, "by_tag": []},
        "samples": SAMPLES if seed == 1 else [],
        "maps": [],
        **more,
    }


def page(write, folder, runs, together=()):
    value = {"experiment": "x", "command": "python x.py", "runs": runs, "together": [*together]}
    return write(value, folder)


def rows(text):
    """Return the cells of every row of every table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def summaries(tmp_path):
    runs = [
        run("synopsis see2017", {"rougeL": result(30.0)}, maps=[MAP]),
        run("synopsis see2017", {"rougeL": result(34.0)}, seed=2),
        run("scitldr see2017", {"rougeL": result(20.0, [19.0, 21.0])}),
    ]
    leads = [
        {"name": "lead", "data": data, "test": {"scores": {"rougeL": result(25.0)}}, "samples": []}
        for data in ("synopsis", "scitldr")
    ]
    return page(write_summaries, tmp_path, runs, leads)


def test_runs_of_one_kind_are_averaged_beside_the_lead(summaries):
    assert ["see2017", "2", "2.5 M", "32.0 ± 2.8", "+7.0", "1.5"] in rows(summaries)
    assert rows(summaries).count(["*lead*", "", "", "25.0", "", ""]) == 2


def test_a_single_run_has_half_its_interval(summaries):
    assert ["see2017", "1", "2.5 M", "20.0 ± 1.0", "-5.0", "1.5"] in rows(summaries)


def test_settings_that_differ_from_the_recipes_are_told(summaries):
    assert summaries.count("Changed from the recipes: all `train.max_steps=5`.") == 2


def test_what_only_some_runs_changed_is_told_with_their_names():
    runs = [{"name": "a", "command": "x=1 seed=1"}, {"name": "b", "command": "x=1 y=2 --out z"}]
    assert changes(runs) == "Changed from the recipes: all `x=1`; b `y=2`."


def test_a_list_that_was_changed_is_told_whole():
    runs = [{"name": "a", "command": "regard train x widths=[1, 2] y=3"}]
    assert changes(runs) == "Changed from the recipes: all `widths=[1, 2] y=3`."


def test_every_picture_that_a_page_names_is_drawn(summaries, tmp_path):
    names = re.findall(r"\]\(([^)]+\.svg)\)", summaries)
    assert len(names) == 3
    assert all((tmp_path / name).stat().st_size for name in names)


def test_a_map_of_copies_says_so(summaries):
    assert "### Where it copies from: synopsis see2017" in summaries


def test_samples_are_shown_as_they_are_written(summaries):
    assert r"1. A \<b\>tool\</b\>, it\_is." in summaries
    assert "   - see2017: a tool" in summaries


def test_ways_to_reply_stand_side_by_side(tmp_path):
    def way(name, reply):
        test = {"scores": {"distinct1": result(5.0)}, "num_examples": 7}
        test |= {"mean_words": 3.21, "num_different": 4}
        return {"name": name, "test": test, "samples": [["you: hi", "hello", reply]]}

    runs = [run(name, {"perplexity": result(40.0)}, metric="loss") for name in ("replies", "back")]
    ways = [way("people", "hello"), way("drawn", "oh hi"), way("reranked", "hi you")]
    text = page(write_dialogue, tmp_path, runs, ways)
    assert ["drawn", "5.0", "3.2", "4"] in rows(text)
    assert text.count("hello") == 1
    assert "   - drawn: oh hi\n   - reranked: hi you" in text


def test_tasks_are_told_one_by_one_as_means_of_all_runs(tmp_path):
    def tagged(seed, *values):
        groups = [
            {"name": f"0{number} task", "count": 100, "accuracy": value}
            for number, value in enumerate(values, start=1)
        ]
        scores = {"accuracy": result(90.0), "aer": result(0.25)}
        test = {"scores": scores, "by_tag": groups}
        return run("babi", scores, seed=seed, metric="accuracy", test=test)

    text = page(write_questions, tmp_path, [tagged(1, 100.0, 50.0), tagged(2, 91.0, 40.0)])
    assert ["babi", "2", "2.5 M", "90.0 ± 0.0", "0.25", "1.5"] in rows(text)
    assert "1 of 2 are solved; the mean over tasks is 70.2 %." in text
    assert "![right answers by task](questions-tasks.svg)" in text


def test_a_run_without_the_time_to_finish_says_so(tmp_path):
    late = run(
        "babi",
        {"accuracy": result(90.0)},
        training={"seconds": 360.0, "stopped": "minutes", "epochs": 7},
        settings={"train": {"max_minutes": 6.0, "max_epochs": 30}},
    )
    text = page(write_questions, tmp_path, [late])
    assert "1 of 1 runs were stopped after 6 minutes, in epoch 7 of 30." in text


def test_a_long_label_keeps_both_ends(tmp_path):
    sentence = "john travelled slowly to the hallway."
    one = {**MAP, "kind": "attention", "columns": ["a", sentence]}
    page(write_questions, tmp_path, [run("babi", {"accuracy": result(90.0)}, maps=[one])])
    assert ">john … to the hallway.</text>" in (tmp_path / "questions-babi-1.svg").read_text()


def test_a_map_too_wide_to_be_read_is_left_out(tmp_path):
    wide = {**MAP, "columns": ["a"] * 60, "weights": [[0.01] * 60]}
    text = page(write_questions, tmp_path, [run("babi", {"accuracy": result(90.0)}, maps=[wide])])
    assert "Where it" not in text

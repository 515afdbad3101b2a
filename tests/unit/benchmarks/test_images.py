import re

import pytest

from benchmarks.results.captions import write_captioning, write_multimodal
from benchmarks.results.images import write_classification
from regard.core.files import write_json


def result(value, interval=None):
    found = {"name": "score", "value": value, "signature": "how"}
    return {**found, "interval": interval} if interval else found


def run(name, scores, *, seed=1, metric="accuracy", **more):
    return {
        "name": name,
        "recipe": name.split()[-1],
        "seed": seed,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "parameters": 2_500_000,
        "command": f"regard train x seed={seed}",
        "training": {"seconds": 90.0, "steps": 20, "target_tokens": 200},
        "settings": {
            "validation": {"metric": metric},
            "data": {"source": {"size": 96}, "batch": {"max_sentences": 256}},
        },
        "journal": [{"step": 10, metric: 70.0}, {"step": 20, metric: 80.0}],
        "test": {"scores": scores, "num_examples": 1000},
        **more,
    }


def page(write, folder, runs, together=()):
    value = {"experiment": "x", "command": "python x.py", "runs": runs, "together": [*together]}
    return write(value, folder)


def rows(text):
    """Return the cells of every row of every table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def classifier(model, value, *, flops, seed=1, confusion=None):
    scores = {"accuracy": result(value, [value - 1, value + 1])}
    found = run(f"fashion-mnist {model}", scores, seed=seed, data="fashion-mnist", flops=flops)
    found["test"]["confusion"] = confusion or {"coat": {"coat": 5, "shirt": 3}}
    return found


@pytest.fixture
def classification(tmp_path):
    both = {"coat": {"coat": 5, "shirt": 3}, "shirt": {"coat": 4, "bag": 1}}
    runs = [
        classifier("he2016", 95.0, flops=2_000_000_000, confusion=both),
        classifier("he2016", 94.9, flops=2_000_000_000, seed=2),
        classifier("dosovitskiy2021", 92.0, flops=1_000_000_000),
    ]
    return page(write_classification, tmp_path, runs)


def test_every_run_stands_beside_what_it_is_asked_for(classification):
    start = ["he2016", "fashion-mnist"]
    goal = "≥ 95: {}"
    first = [*start, "1", "2.50 M", "2.000", "95.0 ± 1.0", goal.format("reached"), "90"]
    second = [*start, "2", "2.50 M", "2.000", "94.9 ± 1.0", goal.format("missed"), "90"]
    assert first in rows(classification)
    assert second in rows(classification)
    assert "≥ 93: missed" in classification


def test_models_are_compared_where_the_cheaper_ends(classification):
    # 10 images a step, 3 times there and back: 20 steps of the cheap one, 10 of the dear one.
    assert "At equal compute, 6.0e+11 operations" in classification
    assert "he2016 70.0 %, dosovitskiy2021 80.0 %." in classification


def test_labels_are_confused_whichever_was_right(classification):
    assert ["coat – shirt", "7", "3"] in rows(classification)
    assert ["bag – shirt", "1", "0"] in rows(classification)
    assert "Mistakes among 1,000 test images (seed 1): he2016 8, dosovitskiy2021 3." in (
        classification
    )


def test_two_models_of_one_recipe_are_told_apart(tmp_path):
    narrow = {**classifier("eyes", 90.0, flops=1), "recipe": "he2016"}
    text = page(write_classification, tmp_path, [narrow, classifier("he2016", 96.0, flops=2)])
    assert [row[0] for row in rows(text)][2:4] == ["eyes", "he2016"]
    assert ["labels", "eyes", "he2016"] in rows(text)
    assert "validation found: eyes 80.0 %, he2016 70.0 %." in text


def test_numbers_of_images_are_told_where_they_were_measured(tmp_path):
    runs = [
        {**classifier(recipe, value, flops=1), "images": num}
        for recipe, num, value in (
            ("he2016", 1000, 80.0),
            ("he2016", 100, 60.0),
            ("dosovitskiy2021", 100, 50.0),
        )
    ]
    runs[2]["settings"] = {"data": {"batch": {"max_sentences": 512}}}
    sizes = {"experiment": "sizes", "command": "python y.py", "runs": runs}
    write_json(tmp_path / "sizes.json", sizes)
    text = page(write_classification, tmp_path, [classifier("he2016", 95.0, flops=1)])
    assert rows(text)[-2:] == [
        ["100", "60.0 ± 1.0", "50.0 ± 1.0"],
        ["1,000", "80.0 ± 1.0", "–"],
    ]
    assert "20 steps of 256 images (he2016) or 512 images (dosovitskiy2021), or of all" in text
    assert_drawn(text, tmp_path, 2)


def assert_drawn(text, folder, num):
    names = re.findall(r"\]\(([^)]+\.svg)\)", text)
    assert len(names) == num
    assert all((folder / name).stat().st_size for name in names)


def test_captions_stand_beside_the_published_and_in_words_alone(tmp_path):
    sample = {"references": ["A <b>dog</b> .", "The dog ."], "answer": "a dog"}
    scores = {"bleu4": result(10.0), "bleu1": result(50.0), "cider": result(0.3)}
    runs = [
        run("xu2015", scores, metric="cider", samples=[sample]),
        run("xu2015", {**scores, "bleu4": result(12.0)}, metric="cider", seed=2, samples=[]),
    ]
    text = page(write_captioning, tmp_path, runs)
    first, *_ = rows(text)
    assert first == ["model", "runs", "weights", "BLEU-1", "BLEU-4", "CIDEr", "minutes"]
    assert ["xu2015", "2", "2.5 M", "50.0 ± 0.0", "11.0 ± 1.4", "0.300 ± 0.000", "1.5"] in rows(
        text
    )
    assert ["*Xu et al. 2015, hard*", "", "", "67.0", "21.3", "–", ""] in rows(text)
    assert "METEOR 18.93 (soft) and 20.30 (hard)" in text
    assert "1. *people*: A \\<b\\>dog\\</b\\> . · The dog .\n   - xu2015: a dog" in text
    assert "photos of 96 × 96 pixels" in text
    assert_drawn(text, tmp_path, 1)


def difference(value, interval):
    return {"name": "BLEU", "value": value, "interval": interval, "p_value": 0.04, "signature": "s"}


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ([0.1, 2.0], "better"),
        ([-2.0, -0.1], "worse"),
        ([-0.1, 2.0], "not different beyond chance"),
    ],
)
def test_what_an_image_is_worth_follows_from_the_interval(tmp_path, interval, verdict):
    runs = [
        run(name, {"bleu": result(30.0)}, metric="bleu", samples=[["a", "ein", answer]])
        for name, answer in (("multimodal", "eine"), ("multimodal-text", "einer"))
    ]
    together = [
        {"than": "no image", "seeds": "1", "differences": {"bleu": difference(9.0, [8.0, 10.0])}},
        {"than": "no image", "seeds": "all", "differences": {"bleu": difference(1.0, interval)}},
    ]
    text = page(write_multimodal, tmp_path, runs, together)
    assert ["no image, seed 1", "+9.00 [+8.00, +10.00], p = 0.040"] in rows(text)
    assert f"compared with no image, over all seeds: {verdict} by BLEU." in text
    assert ["a", "ein", "eine", "einer"] in rows(text)

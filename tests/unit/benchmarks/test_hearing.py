import re
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from benchmarks.results.speech import write
from regard.core.files import write_json
from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import DATASETS, find_data
from regard.runs.recipes import load_recipe

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def hearing(monkeypatch):
    """The script, imported as it is started: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import hearing

    yield hearing
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == BENCHMARKS:
            del sys.modules[name]


def test_every_run_has_a_recipe_that_takes_its_settings_and_a_data_set(hearing):
    planned = [run for plan in hearing.EXPERIMENTS.values() for run in plan(Path("runs"))]
    for run in planned:
        assert load_recipe(run.recipe, run.words).task
        assert run.data[0].partition(":")[0] in DATASETS
    assert len({run.folder for run in planned}) == len(planned)


def test_a_long_recording_holds_its_strings_in_order(hearing, tmp_path):
    examples = find_data("tones:30").train[:3]
    hearing.write_long(tmp_path / "long.wav", examples, pause=0.5)
    heard = open_audio(str(tmp_path / "long.wav"), max_seconds=60).samples
    place = 0
    for example in examples:
        alone = open_audio(example.source, max_seconds=60).samples
        assert np.abs(heard[place : place + len(alone)] - alone).max() < 1e-4
        place += len(alone) + 4_000
    assert place == len(heard)


def test_a_recording_is_as_long_as_asked(hearing, tmp_path):
    examples = find_data("tones:30").train[:2]
    hearing.write_long(tmp_path / "long.wav", examples, pause=0.1, seconds=20)
    with wave.open(str(tmp_path / "long.wav")) as file:
        assert file.getnframes() == 20 * 8000


def test_errors_are_told_apart(hearing):
    found = hearing._errors("one two three four".split(), "one two two four five".split())
    assert found == {"words": 4, "wer": 50.0, "added": 1, "missing": 0}


def test_memory_is_that_of_the_command(hearing):
    # The mark is read from time to time.
    wait = "import time; time.sleep(0.2)"
    used = f"x = bytearray(200 * 2**20); x[::4096] = b'1' * len(x[::4096]); {wait}"
    low = hearing.peak_memory([sys.executable, "-c", wait])
    assert 190 < hearing.peak_memory([sys.executable, "-c", used]) - low < 230
    with pytest.raises(SystemExit, match="ended with 3"):
        hearing.peak_memory([sys.executable, "-c", "raise SystemExit(3)"])


def result(value, interval=None):
    found = {"name": "score", "value": value, "signature": "how"}
    return {**found, "interval": interval} if interval else found


MAP = {
    "right": "one two",
    "words": ["one", "six"],
    "seconds": 0.4,
    "step": 0.1,
    "frames": np.random.default_rng(0).random((40, 8)).round(1).tolist(),
    "roads": {"attention": [[1.0, 0, 0, 0], [0, 0, 1.0, 0]], "CTC alignment": [[0, 1.0, 0, 0]] * 2},
}


def run(name, wer, *, seed=1, **more):
    return {
        "name": name,
        "recipe": name.split()[0],
        "seed": seed,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "parameters": 2_500_000,
        "command": f"regard train x seed={seed} train.max_epochs=12",
        "training": {"seconds": 90.0},
        "journal": [{"step": 10, "wer": 70.0}, {"step": 20, "wer": 8.0}],
        "test": {
            "scores": {"wer": result(wer, [wer - 1, wer + 1])},
            "num_examples": 500,
            "by_tag": [{"name": "theo", "count": 90, "wer": 1.25}],
            "edits": [{"right": "eight", "written": "six", "count": 4}],
        },
        "misheard": [],
        "maps": [],
        **more,
    }


def chunk(pause, seconds, wer):
    about = {"kind": "chunks", "recipe": "chan2016", "criterion": "ctc", "words": 300}
    return {**about, "pause": pause, "chunk": seconds, "wer": wer, "added": 2, "missing": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def page(folder):
    shown = {"misheard": [("theo", "one two", "one six")], "maps": [MAP]}
    runs = [
        run("chan2016 joint", 1.0, **shown),
        run("chan2016 joint", 2.0, seed=2),
        run("chan2016 ctc whole", 4.0),
    ]
    memory = [{"kind": "memory", "minutes": m, "mib": 500 + m, "seconds": 9.0} for m in (1, 16)]
    write_json(
        folder / "speakers.json",
        {"command": "python hearing.py speakers", "runs": [run("chan2016 theo", 30.0)]},
    )
    together = [chunk(0.3, 5, 1.5), chunk(3.0, 5, 2.5), *memory]
    value = {"experiment": "speech", "command": "python x.py", "runs": runs, "together": together}
    return write(value, folder)


def rows(text):
    """Return the cells of every row of every table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_kinds_of_runs_are_averaged_and_judged(page):
    joint = ["chan2016", "attention and CTC", "yes", "2", "1.50 ± 0.71", "reached", "1.5"]
    alone = ["chan2016", "CTC alone", "no", "1", "4.00 ± 1.00", "missed", "1.5"]
    assert joint in rows(page) and alone in rows(page)


def test_a_held_out_speaker_stands_beside_the_known_one(page):
    assert ["theo", "1.2", "30.0 ± 1.0"] in rows(page)
    assert ["*mean*", "1.2", "30.0"] in rows(page)


def test_what_is_misheard_is_told(page):
    assert "eight → six (4)" in page
    assert ["theo", "one two", "one six"] in rows(page)


def test_parts_and_memory_are_told(page):
    assert ["chan2016, CTC alone", "1.5 (+2 −5)", "2.5 (+2 −5)"] in rows(page)
    assert ["16", "516", "9"] in rows(page) and "1.03 times as much for 16 times" in page


def test_every_picture_is_there(page, folder):
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert pictures == ["speech-learning.svg", "speech-chan2016-1.png"]
    assert all((folder / name).stat().st_size > 1_000 for name in pictures)
    assert "CC BY-SA 4.0" in page

"""Train models of speech, hear long recordings with them, and gather JSON files.

    python benchmarks/hearing.py speech speakers --jobs 12

They need the folder `fsdd` in `$REGARD_DATA`. The page is drawn from the JSON files by
`benchmarks/pages.py`.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import conduct
import numpy as np
from side_by_side import Run

from regard.core.files import read_json
from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.interpret.visualize import spectrogram_of
from regard.metrics.text.error_rates import align
from regard.runs import folder as runs
from regard.runs.long_audio import join_segments, transcribe

RECIPES = ("chan2016", "speech-transformer")
LAPTOP = "chan2016-laptop"
"""Small enough to be trained once for each speaker, and to hear hours on a processor."""
CRITERIA: dict[str, tuple[str, ...]] = {
    "joint": (),
    "attention": ("model.ctc.kind=none", "search.ctc_weight=0"),
    "ctc": ("model.ctc.weight=1.0", "search.ctc_weight=1.0", "search.beams=1"),
}
"""What a model learns by, and is searched by: a decoder and CTC, or one of them."""

WHOLE = ("data.source.augmentation.time_masks=0", "data.source.augmentation.mel_masks=0")
"""Nothing is hidden: no SpecAugment."""

SHORTER = ("train.max_epochs=12",)
"""Strings of ten words are learned in fewer epochs than the recipes take."""

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
SEEDS = (1, 2)
NUM_MAPS = 2
NUM_MISHEARD = 12

NUM_STRINGS = 60
"""Test strings that a long recording is made of."""
PAUSES = (0.3, 3.0)
"""Seconds between them."""
CHUNKS = (5, 10, 20)
"""How long a part is at most, in seconds."""
HUSH = 5e-4
"""How loud pauses are: nothing that is recorded is quite silent."""
RATE = 8_000
MINUTES = (1, 4, 16)
"""Lengths of recordings whose memory is measured."""


def _speech(_folder: Path) -> list[Run]:
    small = [Run(f"{LAPTOP} {name}", LAPTOP, ("fsdd",), words) for name, words in CRITERIA.items()]
    return small + [
        Run(f"{recipe} {name}{title}", recipe, ("fsdd",), (*words, *more, *SHORTER), seed)
        for recipe, (name, words), seed in product(RECIPES, CRITERIA.items(), SEEDS)
        for title, more in (("", ()), (" whole", WHOLE))
    ]


def _speakers(_folder: Path) -> list[Run]:
    """Plan a model for each speaker, who is held out and the test."""
    return [Run(f"{LAPTOP} {name}", LAPTOP, (f"fsdd:speaker={name}",)) for name in SPEAKERS]


EXPERIMENTS = {"speech": _speech, "speakers": _speakers}


def main() -> None:
    """Train the runs of some experiments and gather what they measured."""
    asked = conduct.arguments(argparse.ArgumentParser(description=__doc__), EXPERIMENTS)
    conduct.experiments(EXPERIMENTS, asked, gather=_gather, join=_join)


def _gather(run: Run, place: Path) -> dict[str, Any]:
    described = {**conduct.describe(run, place), "misheard": [], "maps": []}
    if run.seed == SEEDS[0] and run.name.endswith("joint"):
        task = runs.load(place)
        test = _read_test(task, place)
        answers = read_json(place / runs.PREDICTIONS)
        described["misheard"] = _misheard(test, answers)
        described["maps"] = _maps(task, test[:NUM_MAPS], answers)
    return described


def _read_test(task: Any, place: Path) -> list[Example]:
    found: list[Example] = task.read_split(
        (str(place / runs.TEST),), "test", config=task.recipe.data
    )
    return found


def _misheard(test: Sequence[Example], answers: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the first strings that were not heard right: who spoke, what, and what was heard."""
    return [
        (example.tags[0], example.target, answer)
        for example, answer in zip(test, answers, strict=True)
        if answer != example.target
    ][:NUM_MISHEARD]


def _maps(task: Any, test: Sequence[Example], answers: Sequence[str]) -> list[dict[str, Any]]:
    """Return when the words of answers were heard, by attention and by CTC, with the frames."""
    asked = [Example(e.source, answer) for e, answer in zip(test, answers, strict=False)]
    found = [spectrogram_of(one) for one in task.attend(asked)]
    return [
        {
            "right": example.target,
            "words": heard.words,
            "seconds": heard.seconds,
            "step": heard.step,
            "frames": _rounded(heard.frames, 1),
            "roads": {name: _rounded(weights, 3) for name, weights in heard.weights.items()},
        }
        for example, heard in zip(test, found, strict=True)
        if heard is not None
    ]


def _rounded(values: Any, digits: int) -> list[list[float]]:
    return [[round(float(value), digits) for value in row] for row in values]


def _join(name: str, folder: Path) -> list[dict[str, Any]]:
    if name != "speech":
        return []
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "long.wav"
        return [*_by_chunk(folder, path), *_by_length(folder, path)]


def _by_chunk(folder: Path, path: Path) -> list[dict[str, Any]]:
    """Hear one long recording in parts of several lengths, by every kind of model."""
    rows = []
    places = {
        (recipe, name): folder / f"{recipe}-{name}-seed{SEEDS[0]}"
        for recipe, name in product((LAPTOP, *RECIPES), CRITERIA)
    }
    tasks = {
        key: runs.load(place) for key, place in places.items() if (place / runs.METRICS).exists()
    }
    test = find_data("fsdd").test[:NUM_STRINGS] if tasks else []
    right = " ".join(example.target for example in test).split()
    for pause in PAUSES:
        write_long(path, test, pause=pause)
        for ((recipe, name), task), seconds in product(tasks.items(), CHUNKS):
            written = join_segments(transcribe(task, str(path), seconds=seconds)).split()
            about = {"kind": "chunks", "recipe": recipe, "criterion": name}
            rows.append({**about, "pause": pause, "chunk": seconds, **_errors(right, written)})
    return rows


def _errors(right: Sequence[str], written: Sequence[str]) -> dict[str, float]:
    pairs = align(right, written)
    return {
        "words": len(right),
        "wer": 100 * sum(one != other for one, other in pairs) / len(right),
        "added": sum(not one for one, _ in pairs),
        "missing": sum(not other for _, other in pairs),
    }


def _by_length(folder: Path, path: Path) -> list[dict[str, Any]]:
    """Measure the memory of the whole command on longer and longer recordings."""
    place = folder / f"{LAPTOP}-joint-seed{SEEDS[0]}"
    if not (place / runs.METRICS).exists():
        return []
    rows = []
    for minutes in MINUTES:
        write_long(path, find_data("fsdd").test, pause=PAUSES[0], seconds=60 * minutes)
        command = [sys.executable, "-m", "regard", "predict", str(place), str(path)]
        command += ["--device", "cpu"]  # what a GPU's libraries take would hide the rest
        begun = time.perf_counter()
        peak = peak_memory([*command, "--chunk", str(CHUNKS[0])])
        seconds = round(time.perf_counter() - begun, 1)
        rows.append({"kind": "memory", "minutes": minutes, "mib": peak, "seconds": seconds})
    return rows


def peak_memory(command: Sequence[str]) -> int:
    """Run a command and return the most memory that it had at a time, in MiB; on Linux only.

    What `getrusage` says of a child begins with the memory of its parent, so the child's own mark
    is read while it runs.
    """
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            mark = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
            peak = max(peak, int(mark[1]) // 1024 if mark else 0)
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
    return peak


def write_long(
    path: Path, examples: Sequence[Example], *, pause: float, seconds: float = 0.0
) -> None:
    """Write recordings one after the other into a WAVE file, a pause after each.

    Args:
        path: Where to.
        examples: What is heard.
        pause: Seconds of hush after each.
        seconds: How long the file is: they come again and again; 0 for each of them once.
    """
    generator = np.random.default_rng(0)
    left = round(seconds * RATE)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        for example in cycle(examples) if seconds else examples:
            sound = open_audio(example.source, max_seconds=60).samples
            samples = np.append(sound, HUSH * generator.standard_normal(round(pause * RATE)))
            samples = samples[:left] if seconds else samples
            left -= len(samples)
            file.writeframes((samples.clip(-1, 1) * (2**15 - 1)).astype("<i2").tobytes())
            if seconds and not left:
                break


if __name__ == "__main__":
    main()

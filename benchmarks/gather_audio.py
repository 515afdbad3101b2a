"""Extractors of speech models: alignments, long recordings, and the memory they take."""

import re
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
from gather_images import shrink
from results import Row

from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.interpret.visualize import spectrogram_of
from regard.metrics.text.error_rates import align
from regard.plots import spectrogram
from regard.runs.long_audio import join_segments, transcribe

NOISE = 5e-4
"""Amplitude of the noise in pauses; no recording is silent."""
RATE = 8_000


def speech_errors(run: Any, argument: Mapping[str, Any]) -> Row:
    """Return the first wrong transcripts and save the first alignments over spectrograms."""
    if not run.run.name.endswith(argument["runs"]):
        return {}
    wrong = [
        [example.tags[0], example.target, output]
        for example, output in zip(run.test, run.predictions, strict=True)
        if output != example.target
    ][: argument["errors"]]
    pairs = list(zip(run.test, run.predictions, strict=True))[: argument["plots"]]
    found = run.task.attend([Example(example.source, output) for example, output in pairs])
    shown = []
    for number, ((example, output), one) in enumerate(zip(pairs, found, strict=True), start=1):
        aligned = spectrogram_of(one)
        if aligned is not None:
            path = run.out / f"{run.folder.parent.name}-{run.run.recipe}-{number}.png"
            save_alignment(path, aligned, title=f"{run.run.recipe}: {output}")
            shown.append([example.target, output])
    return {"wrong": wrong, "alignments": shown}


def save_alignment(path: Path, aligned: Any, *, title: str) -> None:
    """Save a spectrogram with the alignments of its words."""
    spectrogram.save(path, aligned, title=title)
    shrink(path, colours=64)


def long_recordings(context: Any, argument: Mapping[str, Any]) -> Row:
    """Transcribe one long recording in chunks, and measure memory by its length."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.wav"
        chunks = _by_chunk(context, path, argument)
        return {"chunks": chunks, "memory": _by_length(context, path, argument)}


def _by_chunk(context: Any, path: Path, argument: Mapping[str, Any]) -> list[Row]:
    rows = []
    found = [context.find(name) for name in argument["runs"]]
    test = find_data("fsdd").test[: argument["strings"]]
    target = " ".join(example.target for example in test).split()
    for pause in argument["pauses"]:
        write_recording(path, test, pause=pause)
        for run, seconds in product([run for run in found if run], argument["chunks"]):
            output = join_segments(transcribe(run.task, str(path), seconds=seconds)).split()
            pairs = align(target, output)
            rows.append(
                {
                    "run": run.run.name,
                    "pause": pause,
                    "chunk": seconds,
                    "words": len(target),
                    "wer": 100 * sum(one != other for one, other in pairs) / len(target),
                    "inserted": sum(not one for one, _ in pairs),
                    "deleted": sum(not other for _, other in pairs),
                }
            )
    return rows


def _by_length(context: Any, path: Path, argument: Mapping[str, Any]) -> list[Row]:
    """Measure the peak memory of the command on longer and longer recordings, on a CPU."""
    run = context.find(argument["memory_run"])
    rows = []
    for minutes in argument["minutes"] if run else ():
        test, pause = find_data("fsdd").test, argument["pauses"][0]
        write_recording(path, test, pause=pause, seconds=60 * minutes)
        command = [sys.executable, "-m", "regard", "predict", str(run.folder), str(path)]
        command += ["--device", "cpu", "--chunk", str(argument["chunks"][0])]
        started = time.perf_counter()
        peak = peak_memory(command)
        seconds = round(time.perf_counter() - started, 1)
        rows.append({"minutes": minutes, "mib": peak, "seconds": seconds})
    return rows


def peak_memory(command: Sequence[str]) -> int:
    """Run a command and return its peak memory in MiB; on Linux only.

    `getrusage` of a child includes the memory of its parent, so the child's own counter is read.
    """
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            mark = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
            peak = max(peak, int(mark[1]) // 1024 if mark else 0)
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
    return peak


def write_recording(
    path: Path, examples: Sequence[Example], *, pause: float, seconds: float = 0.0
) -> None:
    """Write recordings one after the other into a WAVE file, a pause after each."""
    generator = np.random.default_rng(0)
    left = round(seconds * RATE)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        for example in cycle(examples) if seconds else examples:
            recording = open_audio(example.source, max_seconds=60).samples
            noise = NOISE * generator.standard_normal(round(pause * RATE))
            samples = np.append(recording, noise)
            samples = samples[:left] if seconds else samples
            left -= len(samples)
            file.writeframes((samples.clip(-1, 1) * (2**15 - 1)).astype("<i2").tobytes())
            if seconds and not left:
                break


EXTRACTORS: dict[str, tuple[Callable[[Any, Any], Row], bool]] = {
    "speech_errors": (speech_errors, False)
}
JOINED: dict[str, Callable[[Any, Any], Row]] = {"long_recordings": long_recordings}

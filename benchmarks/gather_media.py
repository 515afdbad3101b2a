"""Extractors of models of images, videos and audio; plots become PNG files at once."""

import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gather import Finished, Together, first_by_tag, resident, with_other_images
from PIL import Image
from results import Row, rounded

from regard.data.audio.decoding import open_audio
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.moving import DIRECTIONS
from regard.data.datasets.synthetic.scenes.questions import question_only_accuracy
from regard.data.example import Example
from regard.metrics.classification import label_accuracy
from regard.metrics.text.error_rates import align
from regard.models.bottlenecks import VariationalBottleneck
from regard.models.encoders.bottleneck import BottleneckEncoder
from regard.plots import figure, spectrogram
from regard.plots.grid import Tile, sheet
from regard.plots.inputs import check_image, resize_image
from regard.runs.prediction.long_audio import join_segments, transcribe
from regard.studies.anomalies import detect_anomalies
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression import jpeg
from regard.studies.compression.codec import Compressor
from regard.studies.latents import LatentDecoder
from regard.studies.reduction import reduce
from regard.tasks.attention_plots import attention_tiles, num_columns, spectrogram_of
from regard.tasks.prediction import to_image

View = Callable[[torch.Tensor], torch.Tensor]
"""A change of videos (B, F, C, Y, X)."""
NUM_SHOWN = 6
"""Test images of a sheet."""
NUM_SAMPLED = 40
NUM_STEPS = 8
MAX_DOTS = 600
NUM_COMPRESSED = 2_000
NUM_VIDEOS = 2
OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up"}
NOISE, RATE = 5e-4, 8_000
"""Amplitude of the noise in pauses (no recording is silent), and samples per second."""
REVERSIBLE = {"alone", "pass"}
"""Events of videos that, played backwards, start in the opposite direction."""


def shrink(path: Path, *, colours: int = 96) -> None:
    """Reduce the colours of a PNG file; maximum coverage keeps similar hues apart."""
    with Image.open(path) as image:
        rgb = image.convert("RGB")
    method = Image.Quantize.MAXCOVERAGE
    rgb.quantize(colours, method=method, dither=Image.Dither.NONE).save(path, optimize=True)


def save_sheet(path: Path, tiles: Sequence[Tile], *, columns: int, colours: int = 96) -> None:
    """Save tiles as a PNG file of few colours."""
    figure.save(path, sheet(tiles, columns=columns))
    shrink(path, colours=colours)


def save_examples(run: Finished) -> None:
    """Save source, output and target of the first test images, two examples a row."""
    rows = [run.task.image_grid(one.source, one.target or None) for one in run.test[:NUM_SHOWN]]
    tiles = [Tile(resize_image(one.image), one.caption, one.note) for row in rows for one in row]
    save_sheet(run.image(run.run.name), tiles, columns=2 * len(rows[0]))


def image_autoencoder(run: Finished, argument: Mapping[str, Any]) -> Row:
    """Return codes, errors of PCA and planes of an autoencoder; save images of some models."""
    subject = AutoencoderRun(run.folder)
    encoder = subject.task.model.encoder
    is_shown = run.run.name not in argument.get("hidden", ())
    if not isinstance(encoder, BottleneckEncoder):
        save_examples(run) if is_shown else None
        return {}
    sources = subject.read_sources(run.run.data[0])
    pca = subject.fit_pca(subject.latent_dim)
    error = float(subject.pca_errors(sources, pca).mean())
    if isinstance(encoder.bottleneck, VariationalBottleneck):
        path = run.image("sampled")
        LatentDecoder(subject.task, path=path).sample(NUM_SAMPLED, name=run.run.recipe)
        shrink(path)
        path = run.image("interpolation")
        LatentDecoder(subject.task, path=path).interpolate(*sources[:2], num=NUM_STEPS)
        shrink(path)
    planes = _planes(subject, run.run.data[0])
    return {"code": subject.latent_dim, "pca": {"value": error}, "planes": planes}


def _planes(subject: AutoencoderRun, data: str) -> Row:
    """Return scores of two-dimensional projections; with points if the code has two numbers."""
    found = reduce(subject, data)
    every = max(1, len(found.labels) // MAX_DOTS)
    planes: Row = {"labels": found.labels[::every]}
    for name, plane in zip(("latents", "pca"), found.projections.values(), strict=True):
        planes[name] = plane.to_dict()
        if subject.latent_dim == 2:
            planes[name]["points"] = rounded(plane.points.numpy()[::every].tolist(), 3)
    return planes


def reconstructions(context: Together, names: Sequence[str]) -> Row:
    """Save test images beside their reconstructions from codes of several sizes."""
    found = [run for name in names if (run := context.find(name))]
    columns: dict[str, torch.Tensor] = {}
    for run in found:
        subject = AutoencoderRun(run.folder)
        sources = subject.read_sources(run.run.data[0])[:NUM_SHOWN]
        columns["original"] = subject.pixels(sources)
        columns[f"{subject.latent_dim} numbers"] = subject.reconstruct(sources)
    tiles = [
        Tile(resize_image(check_image(to_image(images[row]))), "" if row else caption)
        for row in range(NUM_SHOWN)
        for caption, images in columns.items()
    ]
    if found:
        save_sheet(found[0].image("reconstructions"), tiles, columns=len(columns))
    return {}


def anomalies(run: Finished, _argument: object) -> Row:
    """Return how well reconstruction errors detect images of other labels, and plot them."""
    normal = run.run.data[0]
    other = normal.replace("only=", "without=")
    found = detect_anomalies(AutoencoderRun(run.folder), normal, other)
    figure.save(run.image(run.run.name).with_suffix(".svg"), found.plot())
    about = {"normal": normal, "anomalous": other, "num_anomalous": found.to_dict()["num_odd"]}
    return {"anomalies": {**found.to_dict(), **about}}


def compression(run: Finished, _argument: object) -> Row:
    """Return the size of compressed test images and the PSNR of what is decoded."""
    subject = AutoencoderRun(run.folder)
    sources = subject.read_sources(run.run.data[0])[:NUM_COMPRESSED]
    compressor = Compressor(subject)
    found = compressor.compress(sources, run.folder / "test.rgd")
    pixels = subject.pixels(sources)
    bits = subject.latent_dim * float(np.log2(len(compressor.tables[0])))
    return {
        "images": found.num_images,
        "bytes": found.num_bytes,
        "bits_per_pixel": found.bits_per_pixel,
        "uniform_bits_per_pixel": bits / (pixels.shape[2] * pixels.shape[3]),
        "psnr": found.quality.to_dict(),
        "code": subject.latent_dim,
        "shape": "x".join(map(str, pixels.shape[1:])),
    }


def jpeg_baseline(context: Together, _argument: object) -> Row:
    """Return sizes and PSNR of JPEG on the same images, for each image shape."""
    rows: dict[str, Row] = {}
    for run in context.runs:
        subject = AutoencoderRun(run.folder, "cpu")
        pixels = subject.pixels(subject.read_sources(run.run.data[0])[:NUM_COMPRESSED])
        shape = "x".join(map(str, pixels.shape[1:]))
        if shape in rows:
            continue
        rates = jpeg.jpeg_rates(pixels.numpy())
        values = [[r.bits_per_pixel, r.psnr, r.num_bytes, r.setting] for r in rates]
        rows[shape] = {"data": run.run.data[0], "shape": shape, "rates": rounded(values, 4)}
    return {"jpeg": list(rows.values())}


def visual_questions(run: Finished, argument: Mapping[str, Any]) -> Row:
    """Return accuracy without the right image, and save attention over images."""
    if run.run.name in argument.get("without", ()):
        return {}
    outputs = [found[0].text for found in run.task.predict(with_other_images(run.test))]
    targets = [example.target for example in run.test]
    found: Row = {
        "other_image": label_accuracy(outputs, targets).value,
        "question_only": question_only_accuracy(find_data(run.run.data[0]).train, run.test),
    }
    if run.run.data[0].startswith("scenes"):  # rendered by the package
        rows = first_by_tag(run.test).values()
        maps = run.task.attend([Example(run.test[r].source, run.predictions[r]) for r in rows])
        tiles = []
        for example, one in zip([run.test[row] for row in rows], maps, strict=True):
            image, *weighted = attention_tiles(one)
            tiles += [Tile(image.image, example.source[0], f"target: {example.target}"), *weighted]
        save_sheet(run.image(run.run.recipe), tiles, columns=4, colours=192)
        found["attribution"] = maps[0].kind
    return found


def video(run: Finished, _argument: object) -> Row:
    """Return what a model of videos needs: order of frames, attention over time, next frames."""
    if "directions" in run.run.recipe:
        return _directions(run)
    if run.run.recipe.startswith("next-frame"):
        save_examples(run)
        return {}
    pairs = list(zip(run.test, run.predictions, strict=True))[:NUM_VIDEOS]
    found = run.task.attend([Example(example.source, output) for example, output in pairs])
    for number, one in enumerate(found, start=1):
        path = run.image(f"{run.run.recipe}-{number}")
        save_sheet(path, attention_tiles(one), columns=num_columns(one), colours=48)
    return {}


def _directions(run: Finished) -> Row:
    """Return the accuracy on videos as they are, played backwards, and with one frame only."""
    asked = [example for example in run.test if example.tags[0] in REVERSIBLE]
    targets = [example.target for example in asked]
    opposite = [OPPOSITE[direction] for direction in targets]
    views: dict[str, tuple[View, list[str]]] = {
        "as it is": (lambda frames: frames, targets),
        "backwards, target is the opposite": (lambda frames: frames.flip(1), opposite),
        "first frame only": (lambda frames: frames[:, :1].expand_as(frames), targets),
    }
    found = {
        name: label_accuracy(_classify(run.task, asked, view), labels).value
        for name, (view, labels) in views.items()
    }
    return {"views": {**found, "chance": 100 / len(DIRECTIONS)}, "num_views": len(asked)}


def _classify(task: Any, examples: Sequence[Example], view: View) -> list[str]:
    """Label videos that are changed by `view` first."""
    outputs = [""] * len(examples)
    for batch in task.batches(examples):
        with torch.inference_mode():
            found = task.model(view(task.inputs(batch)), batch.source_mask).argmax(-1)
        for row, number in zip(batch.rows, found.tolist(), strict=True):
            outputs[row] = task.labels.write(number)
    return outputs


def speech_errors(run: Finished, argument: Mapping[str, Any]) -> Row:
    """Return the first wrong transcripts and save the first alignments over spectrograms."""
    if not run.run.name.endswith(argument["runs"]):
        return {}
    pairs = list(zip(run.test, run.predictions, strict=True))
    wrong = [[one.tags[0], one.target, output] for one, output in pairs if output != one.target]
    shown = [Example(example.source, output) for example, output in pairs[: argument["plots"]]]
    for number, (example, one) in enumerate(zip(shown, run.task.attend(shown), strict=True), 1):
        if aligned := spectrogram_of(one):
            path = run.image(f"{run.run.recipe}-{number}")
            spectrogram.save(path, aligned, title=f"{run.run.recipe}: {example.target}")
            shrink(path, colours=64)
    return {"wrong": wrong[: argument["errors"]]}


def long_recordings(context: Together, argument: Mapping[str, Any]) -> Row:
    """Transcribe one long recording in chunks, and measure memory by its length on a CPU."""
    found = [run for name in argument["runs"] if (run := context.find(name))]
    test, (first, *_) = find_data("fsdd").test, argument["chunks"]
    target = " ".join(example.target for example in test[: argument["strings"]]).split()
    chunks, memory = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.wav"
        for pause in argument["pauses"]:
            write_recording(path, test[: argument["strings"]], pause=pause)
            for run, seconds in product(found, argument["chunks"]):
                output = join_segments(transcribe(run.task, str(path), seconds=seconds)).split()
                about = {"run": run.run.name, "pause": pause, "chunk": seconds}
                chunks.append({**about, "words": len(target), **_errors(target, output)})
        run = context.find(argument["memory_run"])
        for minutes in argument["minutes"] if run else ():
            write_recording(path, test, pause=argument["pauses"][0], seconds=60 * minutes)
            words = ["predict", str(run.folder), str(path), "--device=cpu", f"--chunk={first}"]
            started = time.perf_counter()
            peak = peak_memory([sys.executable, "-m", "regard", *words])
            seconds = round(time.perf_counter() - started, 1)
            memory.append({"minutes": minutes, "mib": peak, "seconds": seconds})
    return {"chunks": chunks, "memory": memory}


def _errors(target: Sequence[str], output: Sequence[str]) -> Row:
    """Return the word error rate in percent, and the numbers of inserted and deleted words."""
    pairs = align(target, output)
    inserted, deleted = sum(not one for one, _ in pairs), sum(not other for _, other in pairs)
    rate = 100 * sum(one != other for one, other in pairs) / len(target)
    return {"wer": rate, "inserted": inserted, "deleted": deleted}


def peak_memory(command: Sequence[str]) -> int:
    """Run a command and return its peak memory in MiB; on Linux only.

    `getrusage` of a child includes the memory of its parent, so the child's own counter is read.
    """
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, resident("VmHWM", process.pid) // 2**20)
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
    return peak


def write_recording(
    path: Path, examples: Sequence[Example], *, pause: float, seconds: float = 0.0
) -> None:
    """Write recordings with pauses into a WAVE file; repeat them up to a number of seconds."""
    generator = np.random.default_rng(0)
    parts = []
    for example in examples:
        noise = NOISE * generator.standard_normal(round(pause * RATE))
        parts += [open_audio(example.source, max_seconds=60).samples, noise]
    samples = np.concatenate(parts)
    samples = np.resize(samples, round(seconds * RATE)) if seconds else samples
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((samples.clip(-1, 1) * (2**15 - 1)).astype("<i2").tobytes())


EVERY_SEED = (image_autoencoder, anomalies, compression)
FIRST_SEED = (visual_questions, video, speech_errors)
JOINED = (reconstructions, jpeg_baseline, long_recordings)

"""Extractors of models of images and videos; sheets of images become PNG files at once."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from results import Row, rounded

from regard.core.files import read_json
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.moving import DIRECTIONS, find_motion, render_motion
from regard.data.datasets.synthetic.scenes import render
from regard.data.datasets.synthetic.scenes.questions import question_only_accuracy
from regard.data.example import Example
from regard.metrics.representation.roc import roc_curve
from regard.metrics.vision.images import mse
from regard.models.bottlenecks import VariationalBottleneck
from regard.models.encoders.bottleneck import BottleneckEncoder
from regard.plots import figure, overlay
from regard.plots.grid import Tile, sheet
from regard.plots.inputs import resize_image
from regard.studies.anomalies import detect_anomalies
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression import jpeg
from regard.studies.compression.codec import Compressor
from regard.studies.reduction import reduce
from regard.tasks.image_to_image.metrics import to_bytes
from regard.tasks.latents import interpolate, sample_latents

NUM_SHOWN = 6
"""Test images of a sheet."""
NUM_SAMPLED = 40
NUM_STEPS = 8
NUM_POINTS = 60
"""Points of a ROC curve, and quantiles of a distribution."""
MAX_DOTS = 600
NUM_COMPRESSED = 2_000
NUM_VIDEOS = 2
NUM_AVERAGED = 200
"""Test videos over which attention over time is averaged."""
MIN_COUNT = 10
FRAME_SIZE = 64
OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up"}
REVERSIBLE = {"alone", "pass"}
"""Events of videos that, played backwards, start in the opposite direction."""


def save_sheet(path: Path, tiles: Sequence[Tile], *, columns: int, colours: int = 96) -> None:
    """Save tiles as a PNG file of few colours."""
    figure.save(path, sheet(tiles, columns=columns))
    shrink(path, colours=colours)


def shrink(path: Path, *, colours: int = 96) -> None:
    """Reduce the colours of a PNG file; maximum coverage keeps similar hues apart."""
    with Image.open(path) as image:
        rgb = image.convert("RGB")
    method = Image.Quantize.MAXCOVERAGE
    rgb.quantize(colours, method=method, dither=Image.Dither.NONE).save(path, optimize=True)


def image_autoencoder(run: Any, argument: Mapping[str, Any]) -> Row:
    """Return codes, errors of PCA and planes of an autoencoder; save its images."""
    subject = AutoencoderRun(run.folder)
    sources = subject.read_sources(run.run.data[0])
    is_shown = run.run.name not in argument.get("hidden", ())
    stem = f"{run.folder.parent.name}-"
    encoder = subject.task.model.encoder
    if not isinstance(encoder, BottleneckEncoder):
        if is_shown:
            rows = [subject.task.image_grid(source) for source in sources[:NUM_SHOWN]]
            save_rows(run.out / f"{stem}{slug(run.run.name)}.png", rows)
        return {}
    pca = subject.fit_pca(subject.latent_dim)
    decoded = to_bytes(pca.decode(pca.encode(subject.vectors(sources))))
    right = subject.pixels(sources)
    error = mse(decoded.reshape(right.shape).numpy(), right.numpy(), num_bootstrap=200)
    found: Row = {"code": subject.latent_dim, "pca": {"value": error.value}}
    found["planes"] = _planes(subject, run.run.data[0])
    if isinstance(encoder.bottleneck, VariationalBottleneck) and is_shown:
        sampled = subject.task.decode(sample_latents(subject.task, NUM_SAMPLED)).numpy()
        save_sheet(run.out / f"{stem}sampled.png", plain_tiles(sampled), columns=10)
        first, last = subject.task.encode(sources[:2])
        between = subject.task.decode(interpolate(first, last, NUM_STEPS)).numpy()
        save_sheet(run.out / f"{stem}interpolation.png", plain_tiles(between), columns=NUM_STEPS)
    elif is_shown:
        # One column of a sheet of all code sizes, joined by `reconstructions`.
        grids = [subject.task.image_grid(source) for source in sources[:NUM_SHOWN]]
        np.savez(run.folder / "shown.npz", *[tile.image for grid in grids for tile in grid[-2:]])
    return found


def slug(name: str) -> str:
    """Return a run's name as a part of a file name."""
    return name.replace(",", "").replace(" ", "-")


def save_rows(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    """Save source, output and target of several examples, two examples a row."""
    tiles = [Tile(resize_image(one.image), one.caption, one.note) for row in rows for one in row]
    save_sheet(path, tiles, columns=2 * len(rows[0]))


def plain_tiles(images: NDArray[np.uint8]) -> list[Tile]:
    """Return images (B, C, Y, X) as tiles without text."""
    images = images.transpose(0, 2, 3, 1)
    return [Tile(resize_image(np.broadcast_to(one, (*one.shape[:2], 3)))) for one in images]


def reconstructions(context: Any, names: Sequence[str]) -> Row:
    """Save test images beside their reconstructions from codes of several sizes."""
    files = {name: context.find(name).folder / "shown.npz" for name in names if context.find(name)}
    shown = {name: list(np.load(path).values()) for name, path in files.items() if path.exists()}
    tiles = []
    for row in range(NUM_SHOWN if shown else 0):
        tiles.append(
            Tile(resize_image(next(iter(shown.values()))[2 * row + 1]), "" if row else "original")
        )
        for name, images in shown.items():
            caption = "" if row else f"{name.split()[-1]} numbers"
            tiles.append(Tile(resize_image(images[2 * row]), caption))
    if tiles:
        path = context.out / f"{next(iter(files.values())).parent.parent.name}-reconstructions.png"
        save_sheet(path, tiles, columns=1 + len(shown))
    return {}


def _planes(subject: AutoencoderRun, data: str) -> Row:
    """Return scores of two-dimensional projections; with points if the code has two numbers."""
    found = reduce(subject, data)
    planes: Row = {name: plane.to_dict() for name, plane in found.projections.items()}
    every = max(1, len(found.labels) // MAX_DOTS)
    for name, plane in found.projections.items() if subject.latent_dim == 2 else ():
        planes[name]["points"] = rounded(plane.points.numpy()[::every].tolist(), 3)
    names = dict(zip(planes, ("latents", "pca"), strict=True))
    return {names[name]: one for name, one in planes.items()} | {"labels": found.labels[::every]}


def anomalies(run: Any, _argument: object) -> Row:
    """Return how well reconstruction errors detect images of other labels, with thinned curves."""
    normal = run.run.data[0]
    other = normal.replace("only=", "without=")
    found = detect_anomalies(AutoencoderRun(run.folder), normal, other)
    plotted = {"autoencoder": _thinned(found.autoencoder), "pca": _thinned(found.pca)}
    about = {"normal": normal, "anomalous": other, "plotted": plotted}
    counts = {"num_anomalous": len(found.autoencoder.anomalous)}
    return {"anomalies": {**found.to_dict(), **about, **counts}}


def _thinned(detector: Any) -> Row:
    shares = np.linspace(0, 1, NUM_POINTS)
    curve = np.array(roc_curve(detector.normal, detector.anomalous))
    kept = np.unique(np.linspace(0, len(curve) - 1, NUM_POINTS).astype(int))
    found = {
        "normal": np.quantile(detector.normal, shares),
        "anomalous": np.quantile(detector.anomalous, shares),
        "false_alarms": curve[kept, 0],
        "detected": curve[kept, 1],
    }
    return {name: rounded(values.tolist(), 3) for name, values in found.items()}


def compression(run: Any, _argument: object) -> Row:
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


def jpeg_baseline(context: Any, _argument: object) -> Row:
    """Return sizes and PSNR of JPEG on the same images, for each image shape."""
    rows: dict[str, Row] = {}
    for run, folder in context.planned:
        subject = AutoencoderRun(folder, "cpu")
        pixels = subject.pixels(subject.read_sources(run.data[0])[:NUM_COMPRESSED])
        shape = "x".join(map(str, pixels.shape[1:]))
        if shape in rows:
            continue
        with torch.inference_mode():
            rates = jpeg.jpeg_rates(pixels.numpy())
        values = [[r.bits_per_pixel, r.psnr, r.num_bytes, r.setting] for r in rates]
        rows[shape] = {"data": run.data[0], "shape": shape, "rates": rounded(values, 4)}
    return {"jpeg": list(rows.values())}


def visual_questions(run: Any, argument: Mapping[str, Any]) -> Row:
    """Return accuracy without the right image, and save attention over images."""
    if run.run.name in argument.get("without", ()):
        return {}
    half = len(run.test) // 2
    images = [example.source[1] for example in run.test]
    asked = [
        (example.source[0], image)
        for example, image in zip(run.test, images[half:] + images[:half], strict=True)
    ]
    outputs = [found[0].text for found in run.task.predict(asked)]
    shown = [_attended(run.task, run.test[r], run.predictions[r]) for r in _first_scenes(run.test)]
    if shown:
        path = run.out / f"{run.folder.parent.name}-{run.run.recipe}.png"
        tiles = [tile for one in shown for tile in question_tiles(one)]
        save_sheet(path, tiles, columns=4, colours=192)
    return {
        "other_image": _accuracy(outputs, [example.target for example in run.test]),
        "question_only": question_only_accuracy(find_data(run.run.data[0]).train, run.test),
        "attribution": shown[0]["method"] if shown else "",
    }


def _first_scenes(test: Sequence[Example]) -> list[int]:
    """Return the first question of each kind, each about another scene rendered by the package."""
    found: dict[str, int] = {}
    shown = set()
    for row, example in enumerate(test):
        kind, image = example.tags[0], example.source[1]
        if kind not in found and image not in shown and image.startswith("scenes/"):
            found[kind] = row
            shown.add(image)
    return list(found.values())


def _accuracy(outputs: Sequence[str], targets: Sequence[str]) -> float:
    return 100 * sum(map(str.__eq__, outputs, targets)) / len(targets)


def _attended(task: Any, example: Example, output: str) -> Row:
    (found,) = task.attend([Example(example.source, output)])
    weights = found.mean()[0].tolist()
    words = found.labels[1][: found.num_text_tokens]
    return {
        "question": example.source[0],
        "image": example.source[1],
        "kind": example.tags[0],
        "target": example.target,
        "output": output,
        "method": found.kind,
        "words": words,
        "word_weights": weights[: found.num_text_tokens],
        "grid": found.grid,
        "cell_weights": weights[found.num_text_tokens :],
    }


def question_tiles(one: Mapping[str, Any]) -> tuple[Tile, Tile]:
    """Return an image with its question, and the same image under the attribution weights."""
    image = np.asarray(render(one["image"]))
    grid = np.array(one["cell_weights"]).reshape(one["grid"])
    is_right = one["output"] == one["target"]
    caption = one["output"] if is_right else f"{one['output']} (target: {one['target']})"
    words = [word for word in one["words"] if not word.startswith("<")]
    word = words[int(np.argmax(one["word_weights"][: len(words)]))]
    return (
        Tile(resize_image(image), one["question"], one["kind"]),
        Tile(overlay.overlay(image, grid), caption, f"highest: “{word}”", is_right),
    )


def video(run: Any, _argument: object) -> Row:
    """Return what a model of videos needs: order of frames, attention over time, next frames."""
    if "directions" in run.run.recipe:
        return _directions(run)
    if run.run.recipe.startswith("next-frame"):
        rows = [run.task.image_grid(e.source, e.target) for e in run.test[:NUM_SHOWN]]
        save_rows(run.out / f"{run.folder.parent.name}-{slug(run.run.name)}.png", rows)
        return {}
    pairs = zip(run.test, run.predictions, strict=True)
    examples = [Example(example.source, output) for example, output in pairs][:NUM_AVERAGED]
    found = run.task.attend(examples)
    shown = []
    for number, one in enumerate(found[:NUM_VIDEOS], start=1):
        path = run.out / f"{run.folder.parent.name}-{run.run.recipe}-{number}.png"
        save_film(
            path, run.test[number - 1].source, one.labels[0], weights=one.mean(), grid=one.grid
        )
        shown.append([run.test[number - 1].target, " ".join(one.labels[0])])
    return {"videos": shown, "by_frame": _by_frame(found)}


def save_film(
    path: Path, video: str, words: Sequence[str], *, weights: Any, grid: Sequence[int]
) -> None:
    """Save the frames of a rendered video under the weights of each word."""
    weights = np.asarray(weights).reshape(-1, *grid)
    frames = render_motion(find_motion(video), num_frames=grid[0], size=FRAME_SIZE)
    save_sheet(path, overlay.video_attention(frames, words, weights), columns=grid[0], colours=48)


def _by_frame(found: Sequence[Any]) -> dict[str, list[float]]:
    """Return the mean share of each frame in the attention of each frequent word."""
    shares: dict[str, list[torch.Tensor]] = {}
    for one in found:
        by_frame = one.mean().unflatten(1, one.grid).sum((2, 3))  # (T, F)
        for word, row in zip(one.labels[0], by_frame, strict=True):
            shares.setdefault(word, []).append(row / row.sum())
    frequent = {word: rows for word, rows in shares.items() if len(rows) >= MIN_COUNT}
    means = {word: torch.stack(rows).mean(0).tolist() for word, rows in sorted(frequent.items())}
    return {word: [round(share, 3) for share in row] for word, row in means.items()}


def _directions(run: Any) -> Row:
    """Return the accuracy on videos as they are, played backwards, and with one frame only."""
    asked = [example for example in run.test if example.tags[0] in REVERSIBLE]
    targets = [example.target for example in asked]
    opposite = [OPPOSITE[direction] for direction in targets]
    views: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], list[str]]] = {
        "as it is": (lambda frames: frames, targets),
        "backwards, target is the opposite": (lambda frames: frames.flip(1), opposite),
        "first frame only": (lambda frames: frames[:, :1].expand_as(frames), targets),
    }
    found = {name: _accuracy(_classify(run.task, asked, v), t) for name, (v, t) in views.items()}
    return {"views": {**found, "chance": 100 / len(DIRECTIONS)}, "num_views": len(asked)}


def _classify(
    task: Any, examples: Sequence[Example], view: Callable[[torch.Tensor], torch.Tensor]
) -> list[str]:
    """Label videos (B, F, C, Y, X) that are changed by `view` first."""
    outputs = [""] * len(examples)
    for batch in task.batches(examples):
        with torch.inference_mode():
            found = task.model(view(task.inputs(batch)), batch.source_mask).argmax(-1)
        for row, number in zip(batch.rows, found.tolist(), strict=True):
            outputs[row] = task.labels.write(number)
    return outputs


def show_attend_tell(out: Path, options: Mapping[str, str]) -> None:
    """Reproduce "Show, attend and tell" on rendered scenes and copy numbers and plots."""
    from results import write_results

    from regard.studies.reproduce.findings import RESULTS, reproduce

    folder, seed = Path(options.get("folder", "runs/show-attend-tell")), options.get("seed", "1")
    findings = reproduce("show-attend-tell", folder, seed=int(seed))
    training = {
        name: read_json(folder / f"{name}-{seed}" / "metrics.json")["training"]
        for name in findings.numbers
    }
    plots = {name: plot.caption for name, plot in findings.plots.items()}
    value = {**read_json(folder / RESULTS), "training": training, "plots": plots}
    write_results(out / "scenes.json", rounded(value))
    for name in findings.plots:
        with Image.open(folder / f"{name}.png") as image:
            image.convert("RGB").save(out / f"scenes-{name}.png")
        shrink(out / f"scenes-{name}.png")


EXTRACTORS: dict[str, tuple[Callable[[Any, Any], Row], bool]] = {
    "image_autoencoder": (image_autoencoder, True),
    "anomalies": (anomalies, True),
    "compression": (compression, True),
    "visual_questions": (visual_questions, False),
    "video": (video, False),
}
JOINED: dict[str, Callable[[Any, Any], Row]] = {
    "reconstructions": reconstructions,
    "jpeg_baseline": jpeg_baseline,
}

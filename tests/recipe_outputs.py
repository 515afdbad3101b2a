"""Outputs of all recipes in a tiny size, to check that a refactoring changes no number.

Every recipe is shrunk, trained for three steps on generated data on the CPU, and asked for
predictions. The script records digests of parameters and model outputs before and after training,
the training losses and the predictions. Two such records can be compared:

    python tests/recipe_outputs.py OUT.json [--only NAME ...] [--jobs 2]
    python tests/recipe_outputs.py --compare BEFORE.json AFTER.json [--tolerance 0]
"""

import argparse
import dataclasses
import inspect
import json
import logging
import math
import multiprocessing
import os
import random
import sys
import tempfile
import traceback
import wave
from pathlib import Path

# Before torch is imported: one thread, no GPU, and the package of this working tree.
os.environ |= {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

import regard  # noqa: E402

# --- To be adapted when the package changes; all else uses `regard.train` and `regard.load`.

RECIPES = Path(regard.__file__).parent / "recipes"
START = ("init_from", "start")  # the setting for the run to begin from: the first that exists
TEXT_TASKS = ("language_model", "masked_language_model", "denoising", "autoencoding")
MASK_TASKS = ("masked_language_model", "denoising")  # their sources for predictions have a mask
LABEL_PAIRS = ("parikh2016", "sick-bert", "sick-transformer")  # recipes that classify text pairs
PREVIOUS_RUNS = {  # recipe: (setting, recipe of the run that the setting names)
    "rennie2017": (START, "xu2015"),
    "sanh2019-small": (("teacher",), "liu2019-small"),
    "scenes-questions": (START, "xu2015-laptop"),
    "scenes-questions-laptop": (START, "xu2015-laptop"),
    "sick-bert": (START, "devlin2019-small"),
    "sst2-bert": (START, "joshi2020-small"),
}
SPECIAL_SETTINGS = {"sanh2019-small": ("model.encoder.num_layers=1",)}
QUESTIONS = {"predictions": "predict", "scores": "score", "attention": "attend"}  # task methods
WITHOUT_ATTENTION = ("image_to_image",)  # tasks without `attend`: recorded as empty maps


def observe_trainer(observe):
    """Call `observe(model, batches, loss)` whenever training is about to begin."""
    trainer = vars(sys.modules[regard.train.__module__])["Trainer"]
    original = trainer.__init__

    def initialize(self, *args, **kwargs):
        given = inspect.signature(original).bind(self, *args, **kwargs).arguments
        observe(given["model"], given["batches"], given["loss"])
        original(self, *args, **kwargs)

    trainer.__init__ = initialize


# --- Sizes

# fmt: off
LIMITS = {
    "annealing_steps": 4, "feed_forward_dim": 24, "max_epochs": 20, "max_examples": 4,
    "max_extra": 6, "max_length": 80, "max_ratio": 1.0, "max_sentences": 4, "max_tokens": 160,
    "num_draws": 3, "num_frames": 4, "num_heads": 2, "num_layers": 2, "num_mels": 12,
    "num_windows": 2, "soft_steps": 2, "vocab_size": 150, "warmup_steps": 2, "window": 12,
}
# fmt: on
REPLACED = {"max_steps": 3, "log_every": 1, "validate_every": 2, "precision": "fp32"}


def shrink(values, path=""):
    """Return settings such as `model.dim=16` that make a recipe tiny.

    Args:
        values: The recipe, or a part of it, as a dictionary.
        path: The dotted path of `values` in the recipe, with a dot at its end.
    """
    words = []
    for key, value in values.items():
        small = REPLACED.get(key, value)
        if isinstance(value, dict):
            words += shrink(value, f"{path}{key}.")
        elif key in LIMITS:
            small = min(value, LIMITS[key])
        elif key in ("dim", "embedding_dim", "attention_dim"):  # equal ones stay equal
            small = 8 if value <= 64 else 16 if value <= 256 else 24
        elif key == "size":
            small = value // 2 if value <= 32 else 24
        elif key in ("widths", "blocks"):
            small = [8 if key == "widths" else 1] * len(value)
        if small != value:
            words.append(f"{path}{key}={json.dumps(small)}")
    return words


# --- Data

NUM_EXAMPLES = {"train": 24, "valid": 4, "test": 4}
WORDS = "the a small big red dog cat bird sees finds likes tree house near under with".split()
LABELS = ("left", "right", "none")


def make_sentence(number):
    """Return a sentence of 3 to 8 words."""
    generator = random.Random(number)
    return " ".join(generator.choices(WORDS, k=generator.randint(3, 8)))


def write_image(path, number, shift=0):
    """Write a PNG file with a rectangle on noise."""
    pixels = np.random.default_rng(number).integers(0, 80, (32, 32, 3), dtype=np.uint8)
    top, left = 4 + number % 12, 2 + (5 * number + 3 * shift) % 16
    pixels[top : top + 10, left : left + 10, number % 3] = 220
    Image.fromarray(pixels).save(path)


def write_video(path, number):
    """Write a folder of six frames in which the rectangle moves."""
    path.mkdir()
    for frame in range(6):
        write_image(path / f"{frame}.png", number, shift=frame)


def write_audio(path, number):
    """Write a WAV file of 0.3 to 0.5 seconds."""
    times = np.arange(2400 + 200 * (number % 9)) / 8000
    noise = np.random.default_rng(number).normal(0, 500, len(times))
    samples = 9000 * np.sin(2 * np.pi * (200 + 60 * (number % 11)) * times) + noise
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())


MEDIA = {
    "image": ("png", write_image),
    "video": ("dir", write_video),
    "audio": ("wav", write_audio),
}
"""Suffix and writer by the kind of a source."""


def make_example(name, recipe, number, media):
    """Return the columns of one example: sources, and then the target except for plain texts.

    Args:
        name: The recipe's name.
        recipe: The recipe as a dictionary.
        number: The number of the example.
        media: The folder with the files of `MEDIA`.
    """
    text, other = make_sentence(number), make_sentence(number + 100)
    label, task = LABELS[number % len(LABELS)], recipe["task"]
    if task in TEXT_TASKS:
        return [text]
    kind = recipe["data"]["source"]["kind"]
    source = [str(media / f"{number}.{MEDIA[kind][0]}") if kind in MEDIA else text]
    if kind == "joined":
        source.append(str(media / f"{number}.png"))
    elif name in LABEL_PAIRS or "sources" in recipe["data"].get("columns", ()):
        source.append(other)
    if task == "classification":
        return [*source, label]
    if task == "generation":
        return [*source, " ".join(f"{word[:-1]}o" for word in reversed(text.split()))]
    if task == "segmentation":
        cells = range(recipe["data"]["source"]["size"] // 4)
        rows = ["".join("ab."[(row * number + column) % 3] for column in cells) for row in cells]
        return [*source, " ".join(rows)]
    if task == "grounding":
        return [*source, f"0.1 {0.02 * (number % 9):.3f} 0.{5 + number % 4} 0.8"]
    # Images from images. Noise depends on an image's name, so it must not be in a temporary folder.
    source = [f"shapes/0/{number}"] if kind == "image" else source
    return [*source, *source]


# --- Outputs


def digest(*tensors, num_shown=0):
    """Return count, sum, absolute sum and sum of squares, in any order, and the first values."""
    values = [value for one in tensors for value in one.detach().double().flatten().tolist()]
    squares = math.fsum(value * value for value in values)
    return [
        len(values),
        math.fsum(values),
        math.fsum(map(abs, values)),
        squares,
        *values[:num_shown],
    ]


def find_tensor(value):
    """Return the logits of an output, or else its first floating-point tensor, or None."""
    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() else None
    if hasattr(value, "logits"):
        return value.logits
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    parts = value if isinstance(value, list | tuple) else []
    return next((found for part in parts if (found := find_tensor(part)) is not None), None)


def describe_model(model, batches, loss):
    """Return digests of the parameters, and of outputs and loss for the first training batch.

    The outputs are those of the model or, where only its parts are called, the first output of
    each part. The model and the random generators are left as they were.
    """
    outputs = {}

    def keep_first(module, _, output):
        outputs.setdefault(module, find_tensor(output))

    hooks = [part.register_forward_hook(keep_first) for part in (model, *model.children())]
    before, state = {k: v.clone() for k, v in model.state_dict().items()}, random.getstate()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model.eval()
        cost = loss(next(iter(batches.epoch(0))))
    model.load_state_dict(before)
    model.eval()
    random.setstate(state)
    for hook in hooks:
        hook.remove()
    chosen = [outputs[model]] if model in outputs else outputs.values()
    return {
        "parameters": digest(*model.parameters()),
        "logits": digest(*(one for one in chosen if one is not None), num_shown=8),
        "loss": [float(cost.total), float(cost.nll), float(cost.count)],
    }


def describe_answer(found):
    """Return plain values of a list of answers, of a prediction or of an attention map."""
    if isinstance(found, list):
        return [describe_answer(one) for one in found]
    if hasattr(found, "weights"):
        return digest(found.weights, num_shown=8)
    described = {"log_probs": [found.log_prob, *found.token_log_probs]}
    if found.image is not None:
        return {**described, "image": digest(torch.from_numpy(found.image.copy()))}
    return {**described, "text": "" if Path(found.text).is_absolute() else found.text}


def ask(task, examples):
    """Return predictions, scores and attention; None for what the task does not offer."""
    answers, sources = {}, [example.source for example in examples]
    if task.recipe.task in MASK_TASKS:
        sources = [f"{source} <mask> {source}" for source in sources]
    for name, method in QUESTIONS.items():
        if name == "attention" and task.recipe.task in WITHOUT_ATTENTION:
            answers[name] = [digest(torch.zeros(0)) for _ in examples]
            continue
        try:
            found = getattr(task, method)(sources if name == "predictions" else examples)
            answers[name] = describe_answer(found)
        except (AttributeError, NotImplementedError, regard.RegardError) as error:
            print(f"task {task.recipe.task}: no {name} ({error})", file=sys.stderr)
            answers[name] = None
    return answers


def run_recipe(name, media, folder, previous=()):
    """Train a recipe in a tiny size; return its outputs and the run folder.

    Args:
        name: The recipe's name.
        media: The folder with the files of `MEDIA`.
        folder: A folder that does not exist.
        previous: Settings that name a run to learn from.
    """
    folder.mkdir()
    words = shrink(dataclasses.asdict(regard.load_recipe(name)))
    words += [*SPECIAL_SETTINGS.get(name, ()), *previous]
    loaded = regard.load_recipe(name, words)
    recipe = dataclasses.asdict(loaded)
    rows, files, first = {}, {}, 0
    for side, num in NUM_EXAMPLES.items():
        numbers, first = range(first, first + num), first + num
        rows[side] = [make_example(name, recipe, number, media) for number in numbers]
        files[side] = folder / f"{side}.{'txt' if len(rows[side][0]) == 1 else 'tsv'}"
        files[side].write_text("".join("\t".join(row) + "\n" for row in rows[side]))
    data, valid, test = ((str(path),) for path in files.values())
    out = folder / "run"
    # An object: the tokens of a name would be changed to fit the data.
    request = regard.Request(
        data=data, valid=valid, test=test, recipe=loaded, out=out, device="cpu"
    )
    regard.train(request)
    log = map(json.loads, (out / "journal.jsonl").read_text().splitlines())
    steps = [row for row in log if row["kind"] == "train"]
    examples = []
    for row in rows["test"]:
        *source, target = row if len(row) > 1 else (*row, "")
        examples.append(regard.Example(source[0] if len(source) == 1 else tuple(source), target))
    outputs = {
        "initial": observed["initial"],
        "losses": [row["loss"] for row in steps],
        "gradient_norms": [row["gradient_norm"] for row in steps],
        "trained": describe_model(*observed["training"]),
        **ask(regard.load(out, "cpu"), examples),
    }
    return outputs, out


observed = {}
"""The arguments of `describe_model` for the last training, and its first message."""


def prepare_worker():
    """Make a process deterministic and observe what it trains."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    logging.getLogger("regard").setLevel(logging.ERROR)
    observe_trainer(lambda *given: observed.update(training=given, initial=describe_model(*given)))


def record(job):
    """Return a recipe's name with its outputs, or with the error that it raised.

    Args:
        job: The recipe's name, and the folder with the files of `MEDIA`.
    """
    name, media = job
    with tempfile.TemporaryDirectory() as root:
        os.environ["REGARD_CACHE"] = root
        try:
            previous = []
            if name in PREVIOUS_RUNS:
                settings, other = PREVIOUS_RUNS[name]
                setting = next(one for one in settings if hasattr(regard.load_recipe(name), one))
                run = run_recipe(other, media, Path(root, "previous"))[1]
                previous = [f"{setting}={run}"]
            return name, run_recipe(name, media, Path(root, "own"), previous)[0]
        except Exception as error:
            traceback.print_exc()
            message = str(error).replace(root, "").replace(str(media), "")
            return name, {"error": f"{type(error).__name__}: {message}"}


# --- Command line


def record_all(out, names, num_jobs):
    """Record recipes in worker processes; return 1 if one of them fails, else 0."""
    with tempfile.TemporaryDirectory() as media:
        for suffix, write in MEDIA.values():
            for number in range(sum(NUM_EXAMPLES.values())):
                write(Path(media, f"{number}.{suffix}"), number)
        with multiprocessing.get_context("spawn").Pool(num_jobs, prepare_worker) as pool:
            results = dict(pool.imap_unordered(record, [(name, Path(media)) for name in names]))
    failed = sorted(name for name, result in results.items() if "error" in result)
    out.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    print(f"{len(names) - len(failed)} of {len(names)} recipes recorded.", *failed)
    return 1 if failed else 0


def find_differences(before, after, path=""):
    """Yield size and path of each difference; the size is infinite unless both are numbers."""
    if isinstance(before, dict | list) and type(before) is type(after):
        if isinstance(before, list):
            before, after = dict(enumerate(before)), dict(enumerate(after))
        for key in sorted({*before, *after}):
            yield from find_differences(before.get(key), after.get(key), f"{path}.{key}")
    elif before != after:
        are_numbers = all(isinstance(value, int | float) for value in (before, after))
        size = abs(before - after) if are_numbers else math.inf
        yield (math.inf if math.isnan(size) else size), path[1:]


def compare(before, after, tolerance):
    """Print a row for each recipe; return 1 if one differs by more than the tolerance, else 0."""
    num_bad = 0
    for name in sorted({*before, *after}):
        size, status = 0.0, "identical"
        if name not in before or name not in after:
            size, status = math.inf, f"missing in {'BEFORE' if name in after else 'AFTER'}"
        elif differences := list(find_differences(before[name], after[name])):
            size, path = max(differences)
            status = f"max abs difference {size:g} at {path}; {len(differences)} values differ"
        elif "error" in before[name]:
            size, status = math.inf, "failed in both"
        num_bad += size > tolerance
        print(f"{name:30}{status}")
    print(f"{num_bad} of {len({*before, *after})} recipes differ by more than {tolerance:g}.")
    return 1 if num_bad else 0


def main():
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description="Record or compare outputs of all recipes.")
    parser.add_argument("out", nargs="?", type=Path, help="the JSON file to write")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="recipes; all if not given")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--tolerance", type=float, default=0.0, help="largest allowed difference")
    options = parser.parse_args()
    if options.compare:
        return compare(*(json.loads(p.read_text()) for p in options.compare), options.tolerance)
    if options.out is None:
        parser.error("name the file to write, or two files to --compare")
    names = options.only or sorted(path.stem for path in RECIPES.glob("*.toml"))
    return record_all(options.out, names, options.jobs)


if __name__ == "__main__":
    sys.exit(main())

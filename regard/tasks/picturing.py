"""Picturing: an image or a video in, an image out; where both are one, an autoencoder."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.errors import ConfigError, DataError
from regard.core.log import logger
from regard.data.augmentation import augment
from regard.data.examples import Example
from regard.data.image_forms import bring_to
from regard.data.image_pairs import ImagePairs
from regard.data.images import IMAGE, ImageField
from regard.data.labels import LabelledBatch
from regard.data.next_frame import FirstFrames
from regard.data.pixel_noise import add_fixed_noise, add_noise
from regard.data.sources import describe_source
from regard.data.video import VIDEO, VideoConfig
from regard.models.encoders.bottleneck import remember
from regard.models.image_to_image import Drawn, ImageToImage
from regard.search.settings import SearchConfig
from regard.tasks.evaluation import Evaluation
from regard.tasks.picture_measures import Drawings, evaluate_pictures, to_bytes
from regard.tasks.picture_reading import read_pictures, read_pictures_side
from regard.tasks.picturing_recipe import PicturingDataConfig, PicturingRecipe
from regard.tasks.prediction import AttentionMap, Picture, Prediction, as_picture
from regard.tasks.starting import find_image_encoder, find_image_field
from regard.tasks.task import Task
from regard.training.densities import gaussian
from regard.training.loop import Validation
from regard.training.loss import Loss

Source = ImageField | FirstFrames

CHUNK = 256
"""Codes that are drawn at once."""
MOST_FRAMES = 3
"""Frames of a video that are shown, the last ones."""


class PicturingTask(Task[PicturingRecipe]):
    """Draws an image for an image or a video."""

    model: ImageToImage
    read = staticmethod(read_pictures)
    read_side = staticmethod(read_pictures_side)

    def __init__(
        self,
        recipe: PicturingRecipe,
        model: ImageToImage,
        *,
        source: Source,
        device: torch.device,
    ) -> None:
        self.recipe = recipe
        self.model = model.to(device).eval()
        self.source = source
        self.target = _target_field(recipe.data)
        self.device = device

    @classmethod
    def fresh(
        cls, recipe: PicturingRecipe, *, source: Source, device: torch.device
    ) -> "PicturingTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = ImageToImage(recipe.model, source.size, _target_field(recipe.data).size)
        return cls(recipe, model, source=source, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: PicturingRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        start: Task[Any] | None = None,
    ) -> "PicturingTask":
        """Learn the mean of the sources; or begin with another's model, or its encoder."""
        if start is None:
            kind = FirstFrames if isinstance(recipe.data.source, VideoConfig) else ImageField
            source = kind.learn(recipe.data.source, [e.source for e in examples])  # type: ignore[arg-type]
            return cls.fresh(recipe, source=source, device=device)
        if isinstance(start, PicturingTask):
            recipe = replace(recipe, model=start.recipe.model)
            begun = cls.fresh(recipe, source=start.source, device=device)
            begun.model.load_state_dict(start.model.state_dict())
            return begun
        settings, encoder = find_image_encoder(start)
        recipe = replace(recipe, model=replace(recipe.model, encoder=settings))
        begun = cls.fresh(recipe, source=find_image_field(start), device=device)
        begun.model.encoder.load_state_dict(encoder.state_dict())
        return begun

    @classmethod
    def open(
        cls, recipe: PicturingRecipe, folder: Path, *, device: torch.device
    ) -> "PicturingTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        source: Source
        if isinstance(recipe.data.source, VideoConfig):
            source = FirstFrames.load(folder / VIDEO.format("source"))
        else:
            source = ImageField.load(folder / IMAGE.format("source"))
        return cls.fresh(recipe, source=source, device=device)

    def save(self, folder: Path) -> None:
        """Write what the sources' field has learned."""
        self.source.save(folder, "source")

    def training_batches(self, examples: Sequence[Example]) -> ImagePairs:
        """Return the batches to learn from."""
        channels, num_rows, num_columns = self.target.size
        logger.info(
            "Model: %s parameters, %s → %d x %d x %d.",
            f"{self.num_parameters:,}",
            describe_source(self.source),
            channels,
            num_rows,
            num_columns,
        )
        return self._batches(examples, is_shuffled=True)

    def loss(self, batch: LabelledBatch) -> Loss:
        """Return the negative logarithm of the targets' densities, with what the memories cost."""
        seen = batch.source.to(self.device, non_blocking=True).float() / 255
        if self.model.training:
            if isinstance(self.source, ImageField):
                seen = augment(seen, self.source.config.augmentation)
            seen = add_noise(seen, self.recipe.data.noise)
        drawn = self._look(seen, batch.source_mask)
        right = batch.labels.to(self.device, non_blocking=True).float() / 255
        loss = gaussian(drawn.images, right, deviation=self.recipe.model.deviation)
        return replace(loss, total=loss.total + sum(term.sum() for term in drawn.losses.values()))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure the images drawn, and what they cost."""

        def validate() -> Validation:
            found = self._draw(examples, has_noise=True)
            costs = found.costs - found.log_densities(self.recipe.model.deviation)
            loss = float(costs.sum()) / found.right.numel()
            value = float(found.psnr().mean())
            chosen = -loss if self.recipe.validation.metric == "loss" else value
            return Validation(value=chosen, numbers={"loss": loss, "psnr": value})

        return validate

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Draw the images of a test set, spoilt as the recipe says, and measure them."""
        if not examples:
            raise DataError("There is nothing to evaluate: the test set has no example.")
        started = time.perf_counter()
        found = self._draw(examples, has_noise=True)
        return evaluate_pictures(
            found,
            examples,
            change=self.recipe.data.change,
            seconds=time.perf_counter() - started,
            num_bootstrap=num_bootstrap,
        )

    def predict(
        self,
        sources: Sequence[str],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Draw an image for every source as it is, in the order given: one answer each.

        An empty line has one answer, without an image.

        Args:
            sources: One image's or video's reference each.
            search: Not used: nothing is searched for.
            num_best: Not used: there is one likeliest image.
            prefix: Not used: images are drawn all at once.
        """
        at_least("nbest", num_best, 1)
        answers = [[Prediction("", 0.0, (), ())] for _ in sources]
        filled = [row for row, source in enumerate(sources) if source.strip()]
        if filled:
            found = self._draw([_own_target(sources[row].strip()) for row in filled])
            best = replace(found, right=found.pixels).log_densities(self.recipe.model.deviation)
            for row, pixels, value in zip(filled, found.pixels, best.tolist(), strict=True):
                answers[row] = [_answer(pixels, value)]
        return answers

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-density of every target around what is drawn, as a prediction of it.

        The density is normal, with the deviation that the recipe says; noise is as in `evaluate`.
        """
        if not examples:
            return []
        found = self._draw(examples, has_noise=True)
        values = found.log_densities(self.recipe.model.deviation).tolist()
        return [_answer(right, value) for right, value in zip(found.right, values, strict=True)]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return maps without layers: what is looked at is seen in the image that is drawn."""
        nothing = torch.zeros(0, 1, 0, 0)
        return [AttentionMap(source=(), target=(), weights=nothing) for _ in examples]

    def sheet(self, source: Any, target: str | None = None) -> list[Picture]:
        """Return what is read, with noise if the recipe says so, what is drawn, and the target."""
        found = self._draw([Example(source, target or source)], has_noise=True)
        seen = found.seen[0] if found.seen.dim() == 5 else found.seen  # (F, C, Y, X)
        names = [f"frame {number}" for number in range(1, len(seen) + 1)]
        if len(seen) == 1:
            names = ["source"]
        elif len(seen) > MOST_FRAMES:
            names, seen = names[-MOST_FRAMES:], seen[-MOST_FRAMES:]
        sources = [Picture(as_picture(one), name) for one, name in zip(seen, names, strict=True)]
        drawn = Picture(as_picture(found.pixels[0]), "drawn", f"{found.psnr()[0]:.1f} dB")
        return [*sources, drawn, Picture(as_picture(found.right[0]), "right")]

    def encode(self, sources: Sequence[str]) -> Tensor:
        """Return the codes of sources, (B, D): all states of their memories, side by side."""
        codes = []
        examples = [_own_target(source) for source in sources]
        for batch in self._batches(examples).epoch(0) if examples else ():
            with torch.inference_mode():
                seen = batch.source.to(self.device).float() / 255
                memory = self.model.encoder(self._standardise(seen), batch.source_mask)
            codes.append((batch.rows, memory.states.flatten(1).float().cpu()))
        width = self.model.num_cells * self.model.encoder.memory_dim
        return _in_order(codes) if codes else torch.zeros(0, width)

    def decode(self, codes: Tensor) -> Tensor:
        """Return the images that codes (B, D) stand for, (B, C, Y, X), in 8 bits."""
        width = self.model.num_cells * self.model.encoder.memory_dim
        if self.model.is_residual:
            raise ConfigError(
                "A model with `model.is_residual` draws on the source itself, so a code alone is "
                "no image. Train one without it."
            )
        if codes.dim() != 2 or codes.shape[1] != width:
            raise DataError(
                f"`codes` must have {width} numbers each, but has the shape {tuple(codes.shape)}."
            )
        drawn = [torch.zeros(0, *self.target.size, dtype=torch.uint8)]
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK].to(self.device)
            states = part.view(len(part), self.model.num_cells, -1)  # (B, S, D)
            with torch.inference_mode():
                images = self.model.generate(remember(states, layout=self.model.layout))
            drawn.append(to_bytes(images).cpu())
        return torch.cat(drawn)

    def _look(self, seen: Tensor, mask: Tensor) -> Drawn:
        """Draw for sources (B, C, Y, X) or (B, F, C, Y, X), from 0 to 1."""
        base = bring_to(seen, self.target.size)
        with self.autocast():
            return self.model(self._standardise(seen), mask, base)

    def _draw(self, examples: Sequence[Example], *, has_noise: bool = False) -> Drawings:
        """Draw for examples, in the order given; noise hangs on each source's name alone."""
        found: list[tuple[Sequence[int], tuple[Tensor, ...]]] = []
        for batch in self._batches(examples).epoch(0):
            seen = batch.source.to(self.device).float() / 255
            if has_noise:
                names = [examples[row].source for row in batch.rows]
                noise, seed = self.recipe.data.noise, self.recipe.data.seed
                seen = add_fixed_noise(seen, noise, names, seed=seed)
            with torch.inference_mode():
                drawn = self._look(seen, batch.source_mask)
                costs = seen.new_zeros(len(seen)) + sum(drawn.losses.values())
            base = bring_to(seen, self.target.size)
            parts = (drawn.images, batch.labels, to_bytes(seen), to_bytes(base), costs)
            found.append((batch.rows, tuple(part.cpu() for part in parts)))
        columns = zip(*(parts for _, parts in found), strict=True)
        rows = [batch_rows for batch_rows, _ in found]
        return Drawings(*(_in_order(list(zip(rows, column, strict=True))) for column in columns))

    def _standardise(self, seen: Tensor) -> Tensor:
        field = self.source if isinstance(self.source, ImageField) else self.source.frames
        return field.standardise(seen)

    def _batches(self, examples: Sequence[Example], *, is_shuffled: bool = False) -> ImagePairs:
        targets = [example.target for example in examples]
        if isinstance(self.source, FirstFrames):
            right = self.source.read_last(targets, self.target.config.frame)
        else:
            right = self.target.read_all(targets)
        return ImagePairs(
            self.source.read_all([example.source for example in examples]),
            right,
            self.recipe.data.batch,
            fields=(self.source, self.target),
            seed=self.recipe.seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )


def _target_field(config: PicturingDataConfig) -> ImageField:
    """Return what reads targets, which are drawn as they are: nothing is learned of them."""
    channels = config.target.channels
    return ImageField(config.target, (0.0,) * channels, (1.0,) * channels)


def _own_target(source: str) -> Example:
    return Example(source, source)


def _answer(pixels: Tensor, log_prob: float) -> Prediction:
    """Make an answer of an image (C, Y, X) in 8 bits."""
    num_rows, num_columns = pixels.shape[1:]
    text = f"image of {num_rows} x {num_columns} pixels"
    return Prediction(text, log_prob, (), (), image=as_picture(pixels))


def _in_order(parts: Sequence[tuple[Sequence[int], Tensor]]) -> Tensor:
    """Put together what was found batch by batch, in the order of the rows."""
    rows = torch.tensor([row for batch_rows, _ in parts for row in batch_rows])
    return torch.cat([part for _, part in parts])[rows.argsort()]

"""Image to image: an image or a video in, an image out; where both are one, an autoencoder."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.image.augment import augment_pairs
from regard.data.image.field import ImageField
from regard.data.image.noise import add_fixed_noise, add_noise
from regard.data.image.pairs import ImagePairs
from regard.data.image.variants import bring_to
from regard.data.labels import LabelledBatch
from regard.models.bottlenecks import restart_annealing
from regard.models.image_to_image import Drawn, ImageToImage
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.image_to_image import latents as picture_codes
from regard.tasks.image_to_image.fields import (
    Source,
    check_same_form,
    fit_source,
    load_source,
    put_eyes,
    read_sides,
    take_eyes,
    target_field,
)
from regard.tasks.image_to_image.metrics import (
    Drawings,
    evaluate_pictures,
    in_order,
    lay_out,
    to_bytes,
)
from regard.tasks.image_to_image.reading import read_pictures, read_pictures_side
from regard.tasks.image_to_image.recipe import ImageToImageRecipe
from regard.tasks.prediction import AttentionMap, Picture, Prediction, as_picture
from regard.training.loop import Validation
from regard.training.losses import Loss, gaussian


class ImageToImageTask(Task[ImageToImageRecipe]):
    """Draws an image for an image or a video."""

    model: ImageToImage
    read = staticmethod(read_pictures)
    read_side = staticmethod(read_pictures_side)

    def __init__(
        self,
        recipe: ImageToImageRecipe,
        model: ImageToImage,
        *,
        source: Source,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.source = source
        self.target = target_field(recipe.data)

    @classmethod
    def fresh(
        cls, recipe: ImageToImageRecipe, *, source: Source, device: torch.device
    ) -> "ImageToImageTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = ImageToImage(recipe.model, source.spec, target_field(recipe.data).spec)
        return cls(recipe, model, source=source, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: ImageToImageRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> "ImageToImageTask":
        """Learn the mean of the sources; or begin with another's model, or its encoder."""
        if init_from is None:
            source = fit_source(recipe.data, [example.source for example in examples])
            return cls.fresh(recipe, source=source, device=device)
        if isinstance(init_from, ImageToImageTask):
            check_same_form(init_from, recipe.data)
            recipe = replace(recipe, model=init_from.recipe.model)
            begun = cls.fresh(recipe, source=init_from.source, device=device)
            begun.model.load_state_dict(init_from.model.state_dict())
            restart_annealing(begun.model)
            return begun
        recipe, eye, encoder = take_eyes(recipe, init_from)
        begun = cls.fresh(recipe, source=eye, device=device)
        put_eyes(begun.model.encoder, encoder)
        return begun

    @classmethod
    def open(
        cls, recipe: ImageToImageRecipe, folder: Path, *, device: torch.device
    ) -> "ImageToImageTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        return cls.fresh(recipe, source=load_source(recipe.data, folder), device=device)

    def save(self, folder: Path) -> None:
        """Write what the sources' field has learned."""
        self.source.save(folder, "source")

    def training_batches(self, examples: Sequence[Example]) -> ImagePairs:
        """Return the batches to learn from."""
        sides = " → ".join(str(side.spec) for side in (self.source, self.target))
        logger.info("Model: %s parameters, %s.", f"{self.num_parameters:,}", sides)
        return self._batches(examples, is_shuffled=True)

    def loss(self, batch: LabelledBatch) -> Loss:
        """Return the negative logarithm of the targets' densities, with what the memories cost."""
        seen = batch.source.to(self.device, non_blocking=True).float() / 255
        right = batch.labels.to(self.device, non_blocking=True).float() / 255
        if self.model.training:
            if isinstance(self.source, ImageField):
                seen, right = augment_pairs(seen, right, self.source.config.augmentation)
            seen = add_noise(seen, self.recipe.data.noise)
        with self.autocast():
            drawn = self._look(seen, batch.source_mask)
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
        evaluation = evaluate_pictures(
            found,
            examples,
            change=self.recipe.data.change,
            seconds=time.perf_counter() - started,
            num_bootstrap=num_bootstrap,
        )
        bound = picture_codes.measure_bound(self, examples, num_bootstrap=num_bootstrap)
        evaluation.results.update(bound)
        return evaluation

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
            names = [sources[row].strip() for row in filled]
            found = self._draw([Example(name, name) for name in names])
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
        """Return maps without layers: what was seen is in the image that is drawn."""
        nothing = torch.zeros(0, 1, 0, 0)
        return [AttentionMap(source=(), target=(), weights=nothing) for _ in examples]

    def sheet(self, source: Any, target: str | None = None) -> list[Picture]:
        """Return what is read, with noise if the recipe says so, what is drawn, and the target."""
        found = self._draw([Example(source, target or source)], has_noise=True)
        return lay_out(found)

    def encode(self, sources: Sequence[str]) -> Tensor:
        """Return the codes of sources, (B, D), in 32 bits and on the host."""
        return picture_codes.encode(self, sources)

    def decode(self, codes: Tensor) -> Tensor:
        """Return the images that codes (B, D) stand for, (B, C, Y, X), in 8 bits."""
        return picture_codes.decode(self, codes)

    def see(
        self, examples: Sequence[Example], *, has_noise: bool = False
    ) -> Iterator[tuple[LabelledBatch, Tensor]]:
        """Yield batches with their sources from 0 to 1, (B, C, Y, X) or (B, F, C, Y, X).

        Args:
            examples: What is read.
            has_noise: Whether sources are spoilt as the recipe says, each always in the same way.
        """
        noise, seed = self.recipe.data.noise, self.recipe.data.seed
        for batch in self._batches(examples).epoch(0):
            seen = batch.source.to(self.device).float() / 255
            if has_noise:
                names = [examples[row].source for row in batch.rows]
                seen = add_fixed_noise(seen, noise, names, seed=seed)
            yield batch, seen

    def standardise(self, seen: Tensor) -> Tensor:
        """Return what the encoder takes of sources from 0 to 1."""
        return self.source.standardise(seen)

    def base_of(self, seen: Tensor) -> Tensor:
        """Return sources from 0 to 1 in the form of the target, (B, C, Y, X)."""
        return bring_to(seen, self.target.spec.shape)

    def _look(self, seen: Tensor, mask: Tensor) -> Drawn:
        return self.model(self.standardise(seen), mask, self.base_of(seen))

    def _draw(self, examples: Sequence[Example], *, has_noise: bool = False) -> Drawings:
        """Draw for examples, in the order given."""
        found = []
        for batch, seen in self.see(examples, has_noise=has_noise):
            with torch.inference_mode():
                drawn = self._look(seen, batch.source_mask)
                costs = seen.new_zeros(len(seen)) + sum(drawn.losses.values())
            parts = {
                "values": drawn.images,
                "right": batch.labels,
                "seen": to_bytes(seen),
                "base": to_bytes(self.base_of(seen)),
                "costs": costs,
            }
            found.append((batch.rows, {name: part.cpu() for name, part in parts.items()}))
        names = [field.name for field in fields(Drawings)]
        return Drawings(
            **{name: in_order([(rows, parts[name]) for rows, parts in found]) for name in names}
        )

    def _batches(self, examples: Sequence[Example], *, is_shuffled: bool = False) -> ImagePairs:
        sources, targets = read_sides(self.source, self.target, examples)
        return ImagePairs(
            sources,
            targets,
            self.recipe.data.batch,
            fields=(self.source, self.target),
            seed=self.recipe.seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )


def _answer(pixels: Tensor, log_prob: float) -> Prediction:
    """Make an answer of an image (C, Y, X) in 8 bits."""
    text = f"image of {' x '.join(map(str, pixels.shape[1:]))} pixels"
    return Prediction(text, log_prob, (), (), image=as_picture(pixels))

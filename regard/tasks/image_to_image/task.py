"""Image to image: an image or a video in, an image out; an autoencoder if both are the same."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.image.augment import augment_pairs
from regard.data.image.field import ImageField
from regard.data.image.noise import add_fixed_noise, add_noise
from regard.data.image.pairs import ImagePairs
from regard.data.image.variants import convert_images
from regard.data.labels import LabelledBatch
from regard.models.encoders.bottleneck import BottleneckEncoder, memory_from_latents
from regard.models.image_to_image import ImageOutput, ImageToImage
from regard.tasks.base import Fields, Task, WarmStart
from regard.tasks.batches import map_batches, predict_filled
from regard.tasks.evaluation import Evaluation, check_examples
from regard.tasks.image_to_image.fields import (
    Source,
    check_same_form,
    read_sides,
    source_class,
    start_from_image_encoder,
    target_field,
)
from regard.tasks.image_to_image.metrics import (
    GeneratedImages,
    evaluate_images,
    image_tiles,
    log_densities,
    to_bytes,
)
from regard.tasks.image_to_image.reading import read_pictures, read_pictures_side
from regard.tasks.image_to_image.recipe import ImageToImageRecipe
from regard.tasks.latents import check_latents, measure_bound
from regard.tasks.prediction import Picture, Prediction, as_picture
from regard.tasks.source_task import EncoderTask
from regard.training.loop import Validation
from regard.training.losses import Loss, gaussian_nll

CHUNK = 256
"""Latents that are decoded at once."""


class ImageToImageTask(EncoderTask[ImageToImageRecipe]):
    """Generates an image for an image or a video."""

    model: ImageToImage
    source: Source
    read = staticmethod(read_pictures)
    read_side = staticmethod(read_pictures_side)

    @property
    def target(self) -> ImageField:
        """The field of the targets."""
        return target_field(self.recipe.data)

    @property
    def latent_dim(self) -> int:
        """Number of values of a latent vector."""
        return self.model.num_cells * self.model.encoder.memory_dim

    @classmethod
    def fit_fields(cls, recipe: ImageToImageRecipe, examples: Sequence[Example]) -> Fields:
        """Fit the field of the sources; that of the targets has nothing to fit."""
        config, sources = recipe.data, [example.source for example in examples]
        return {"source": source_class(config).fit(config.source, sources)}

    @classmethod
    def load_fields(cls, recipe: ImageToImageRecipe, folder: Path) -> Fields:
        """Load the field of the sources."""
        return {"source": source_class(recipe.data).load(folder)}

    @classmethod
    def build_model(cls, recipe: ImageToImageRecipe, fields: Fields) -> ImageToImage:
        """Build the encoder and the generator."""
        return ImageToImage(recipe.model, fields["source"].spec, target_field(recipe.data).spec)

    @classmethod
    def warm_start(
        cls, recipe: ImageToImageRecipe, init_from: Task[Any], examples: Sequence[Example]
    ) -> WarmStart:
        """Start from all of a run of this task, or from the image encoder of another one."""
        if isinstance(init_from, ImageToImageTask):
            check_same_form(init_from, recipe.data)
            recipe = replace(recipe, model=init_from.recipe.model)
            return WarmStart(recipe, init_from.fields, init_from.model.state_dict())
        return start_from_image_encoder(recipe, init_from)

    def training_batches(self, examples: Sequence[Example]) -> ImagePairs:
        """Return the training batches."""
        self.log_model(" → ".join(str(side.spec) for side in (self.source, self.target)))
        return self._pairs(examples, is_shuffled=True)

    def batches(self, examples: Sequence[Example]) -> Iterable[LabelledBatch]:
        """Return batches; `rows` are the numbers of the examples."""
        return self._pairs(examples).epoch(0)

    def _pairs(self, examples: Sequence[Example], *, is_shuffled: bool = False) -> ImagePairs:
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

    def loss(self, batch: LabelledBatch) -> Loss:
        """Compute the negative log-density of the targets, with the terms of the encoder."""
        pixels = batch.source.to(self.device, non_blocking=True).float() / 255
        targets = batch.labels.to(self.device, non_blocking=True).float() / 255
        if self.model.training:
            if isinstance(self.source, ImageField):
                pixels, targets = augment_pairs(pixels, targets, self.source.config.augmentation)
            pixels = add_noise(pixels, self.recipe.data.noise)
        with self.autocast():
            found = self._forward(pixels, batch.source_mask)
        loss = gaussian_nll(found.images, targets, std=self.recipe.model.deviation)
        return replace(loss, total=loss.total + sum(term.sum() for term in found.losses.values()))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the generated images and their loss."""

        def validate() -> Validation:
            found = self.generate(examples, has_noise=True)
            losses = found.losses - self._log_densities(found.values, found.targets)
            loss = float(losses.sum()) / found.targets.numel()
            value = float(found.psnr().mean())
            chosen = -loss if self.recipe.validation.metric == "loss" else value
            return Validation(value=chosen, metrics={"loss": loss, "psnr": value})

        return validate

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Generate the images of a test set, with the noise of the recipe, and measure them."""
        check_examples(examples)
        started = time.perf_counter()
        found = self.generate(examples, has_noise=True)
        evaluation = evaluate_images(
            found,
            examples,
            change=self.recipe.data.change,
            seconds=time.perf_counter() - started,
            num_bootstrap=num_bootstrap,
        )
        bound = measure_bound(
            self,
            examples,
            split=partial(self._split_at_bottleneck, examples=examples),
            how=f"nats an image|images:{len(examples)}|deviation:{self.recipe.model.deviation:g}",
            per={"per_value": len(examples) * math.prod(self.target.spec.shape)},
            num_bootstrap=num_bootstrap,
        )
        evaluation.results.update(bound)
        return evaluation

    def _split_at_bottleneck(
        self, batch: LabelledBatch, examples: Sequence[Example]
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the states before the bottleneck, and a function from latents to log-densities."""
        encoder = self.model.encoder
        assert isinstance(encoder, BottleneckEncoder)
        pixels = self.pixels(batch, examples, has_noise=True)

        def compute_log_probs(latents: Tensor) -> Tensor:
            memory = memory_from_latents(latents, layout=self.model.layout)
            images = self.model.generate(memory, self.base_of(pixels)).cpu()
            return self._log_densities(images, batch.labels)  # (B,)

        wide = encoder.inner_memory(self.standardise(pixels), batch.source_mask)
        return wide.states, compute_log_probs

    def predict(self, sources: Sequence[str], *, num_best: int = 1) -> list[list[Prediction]]:
        """Generate an image for each source, without noise: one prediction per source.

        An empty line has one prediction, without an image.

        Args:
            sources: One image's or video's reference each.
            num_best: At least 1; there is only one image.
        """
        at_least("nbest", num_best, 1)

        def predict(filled: list[str]) -> list[list[Prediction]]:
            found = self.generate([Example(one.strip(), one.strip()) for one in filled])
            values = self._log_densities(found.values, found.pixels).tolist()
            return [[_prediction(*one)] for one in zip(found.pixels, values, strict=True)]

        return predict_filled(predict, sources)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-density of each target around the generated image.

        The density is normal, with the recipe's deviation; noise is as in `evaluate`.
        """
        if not examples:
            return []
        found = self.generate(examples, has_noise=True)
        values = self._log_densities(found.values, found.targets).tolist()
        return [_prediction(*one) for one in zip(found.targets, values, strict=True)]

    def _log_densities(self, values: Tensor, targets: Tensor) -> Tensor:
        return log_densities(values, targets, deviation=self.recipe.model.deviation)

    def image_grid(self, source: Any, target: str | None = None) -> list[Picture]:
        """Return the source, with noise if the recipe has any, the generated image, the target."""
        return image_tiles(self.generate([Example(source, target or source)], has_noise=True))

    def encode(self, sources: Sequence[str]) -> Tensor:
        """Return the latents of sources, (B, D), float32, on the host: all states side by side."""
        if not sources:
            return torch.zeros(0, self.latent_dim)
        examples = [Example(source, source) for source in sources]

        @torch.inference_mode()
        def encode(batch: LabelledBatch) -> Tensor:
            inputs = self.standardise(self.pixels(batch, examples))
            return self.model.encoder(inputs, batch.source_mask).states.flatten(1).float().cpu()

        return torch.stack(map_batches(encode, self.batches(examples)))

    def decode(self, latents: Tensor) -> Tensor:
        """Return images (B, C, Y, X) in 8 bits from latents (B, D)."""
        if self.model.is_residual:
            raise ConfigError(
                "A model with `model.is_residual` draws on the source itself, so a code alone is "
                "no image. Train one without it."
            )
        check_latents(latents, self.latent_dim)
        images = [torch.zeros(0, *self.target.spec.shape, dtype=torch.uint8)]
        for chunk in torch.split(latents, CHUNK) if len(latents) else ():
            states = chunk.to(self.device, torch.float32).view(len(chunk), self.model.num_cells, -1)
            with torch.inference_mode():
                generated = self.model.generate(
                    memory_from_latents(states, layout=self.model.layout)
                )
            images.append(to_bytes(generated).cpu())
        return torch.cat(images)

    def pixels(
        self, batch: LabelledBatch, examples: Sequence[Example], *, has_noise: bool = False
    ) -> Tensor:
        """Return the sources of a batch from 0 to 1, (B, C, Y, X) or (B, F, C, Y, X).

        Args:
            batch: A batch of the examples.
            examples: Sources with their targets.
            has_noise: Whether to add the noise of the recipe, always the same to a source.
        """
        pixels: Tensor = batch.source.to(self.device).float() / 255
        if not has_noise:
            return pixels
        names = [examples[row].source for row in batch.rows]
        data = self.recipe.data
        return add_fixed_noise(pixels, data.noise, names, seed=data.seed)

    def standardise(self, pixels: Tensor) -> Tensor:
        """Return the encoder inputs from sources from 0 to 1."""
        return self.source.standardize(pixels)

    def base_of(self, pixels: Tensor) -> Tensor:
        """Return sources from 0 to 1 in the form of the target, (B, C, Y, X)."""
        return convert_images(pixels, self.target.spec.shape)

    def _forward(self, pixels: Tensor, mask: Tensor) -> ImageOutput:
        return self.model(self.standardise(pixels), mask, self.base_of(pixels))

    def generate(self, examples: Sequence[Example], *, has_noise: bool = False) -> GeneratedImages:
        """Generate the images of examples, in the order given."""

        @torch.inference_mode()
        def generate(batch: LabelledBatch) -> Iterable[tuple[Tensor, ...]]:
            pixels = self.pixels(batch, examples, has_noise=has_noise)
            found = self._forward(pixels, batch.source_mask)
            parts = GeneratedImages(
                values=found.images,
                targets=batch.labels,
                sources=to_bytes(pixels),
                base=to_bytes(self.base_of(pixels)),
                losses=pixels.new_zeros(len(pixels)) + sum(found.losses.values()),
            )
            return zip(*(getattr(parts, one.name).cpu() for one in fields(parts)), strict=True)

        found = map_batches(generate, self.batches(examples))
        return GeneratedImages(*map(torch.stack, zip(*found, strict=True)))


def _prediction(pixels: Tensor, log_prob: float) -> Prediction:
    """Return a prediction from an image (C, Y, X) in 8 bits."""
    text = f"image of {' x '.join(map(str, pixels.shape[1:]))} pixels"
    return Prediction(text, log_prob, (), (), image=as_picture(pixels))

"""Image-to-image: an image or a video in, an image out; an autoencoder if both are the same."""

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
from regard.data.example import Example, require_examples, require_list
from regard.data.image.augment import augment_pairs
from regard.data.image.field import ImageField
from regard.data.image.noise import add_fixed_noise, add_noise
from regard.data.image.pairs import ImagePairs
from regard.data.image.variants import convert_images
from regard.data.labels import LabelledBatch
from regard.models.encoders.bottleneck import BottleneckEncoder, memory_from_latents
from regard.models.image_to_image import ImageOutput, ImageToImage
from regard.tasks.base import Fields, Task, WarmStart
from regard.tasks.batches import map_batches, predict_nonempty
from regard.tasks.evaluation import Evaluation, check_examples
from regard.tasks.image_to_image.fields import (
    Source,
    check_same_shapes,
    read_source_and_target,
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
from regard.tasks.image_to_image.reading import read_image_split, read_images
from regard.tasks.image_to_image.recipe import ImageToImageRecipe
from regard.tasks.latents import check_latents, measure_elbo
from regard.tasks.prediction import CaptionedImage, Prediction, to_image
from regard.tasks.source_task import EncoderTask
from regard.training.losses import Loss, gaussian_nll
from regard.training.validation import Validation

CHUNK = 256
"""Number of latents to decode at once."""


class ImageToImageTask(EncoderTask[ImageToImageRecipe]):
    """Generates an image for an image or a video."""

    model: ImageToImage
    source: Source
    throughput_unit = "examples"
    read = staticmethod(read_images)
    read_split = staticmethod(read_image_split)

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
        """Fit the field of the sources; the field of the targets needs no fitting."""
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
        """Start from a whole run of this task, or from the image encoder of another run."""
        if isinstance(init_from, ImageToImageTask):
            check_same_shapes(init_from, recipe.data)
            recipe = replace(recipe, model=init_from.recipe.model)
            return WarmStart(recipe, init_from.fields, init_from.model.state_dict())
        return start_from_image_encoder(recipe, init_from)

    def training_batches(self, examples: Sequence[Example]) -> ImagePairs:
        """Return the training batches."""
        self.log_model(" → ".join(str(side.spec) for side in (self.source, self.target)))
        return self._pairs(examples, is_shuffled=True)

    def batches(self, examples: Sequence[Example]) -> Iterable[LabelledBatch]:
        """Return batches; `rows` are the indices of the examples."""
        return self._pairs(examples).epoch(0)

    def _pairs(self, examples: Sequence[Example], *, is_shuffled: bool = False) -> ImagePairs:
        sources, targets = read_source_and_target(self.source, self.target, examples)
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
        """Compute the negative log-density of the targets, plus the losses of the encoder."""
        pixels = batch.source.to(self.device, non_blocking=True).float() / 255
        targets = batch.labels.to(self.device, non_blocking=True).float() / 255
        if self.model.training:
            if isinstance(self.source, ImageField):
                pixels, targets = augment_pairs(pixels, targets, self.source.config.augmentation)
            pixels = add_noise(pixels, self.recipe.data.noise)
        with self.autocast():
            output = self._forward(pixels, batch.source_mask)
        loss = gaussian_nll(output.images, targets, std=self.recipe.model.deviation)
        return replace(loss, total=loss.total + sum(term.sum() for term in output.losses.values()))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the generated images and their loss."""

        def validate() -> Validation:
            images = self.generate(examples, has_noise=True)
            losses = images.losses - self._log_densities(images.values, images.targets)
            loss = float(losses.sum()) / images.targets.numel()
            psnr = float(images.psnr().mean())
            metric = self.recipe.validation.metric
            metrics = {"loss": loss, "psnr": psnr}
            return Validation(-loss if metric == "loss" else psnr, metrics, metric)

        return validate

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Generate the images of a test set, with the noise of the recipe, and measure them."""
        check_examples(examples)
        started = time.perf_counter()
        images = self.generate(examples, has_noise=True)
        evaluation = evaluate_images(
            images,
            examples,
            change=self.recipe.data.change,
            seconds=time.perf_counter() - started,
            num_bootstrap=num_bootstrap,
        )
        elbo = measure_elbo(
            self,
            examples,
            split=partial(self._split_at_bottleneck, examples=examples),
            signature=(
                f"nats an image|images:{len(examples)}|deviation:{self.recipe.model.deviation:g}"
            ),
            per={"per_value": len(examples) * math.prod(self.target.spec.shape)},
            num_bootstrap=num_bootstrap,
        )
        evaluation.results.update(elbo)
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
            images = self.model.generate(memory, self.to_target_form(pixels)).cpu()
            return self._log_densities(images, batch.labels)  # (B,)

        memory = encoder.inner_memory(self.standardise(pixels), batch.source_mask)
        return memory.states, compute_log_probs

    def predict(self, sources: Sequence[str], *, num_best: int = 1) -> list[list[Prediction]]:
        """Generate an image for each source, without noise: one prediction per source.

        An empty line has one prediction, without an image.

        Args:
            sources: Paths of images or videos.
            num_best: At least 1; there is only one image.
        """
        at_least("nbest", num_best, 1)

        def predict(nonempty: list[str]) -> list[list[Prediction]]:
            images = self.generate([Example(path.strip(), path.strip()) for path in nonempty])
            log_probs = self._log_densities(images.values, images.pixels).tolist()
            return [[_prediction(*pair)] for pair in zip(images.pixels, log_probs, strict=True)]

        return predict_nonempty(predict, sources)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-density of each target under a normal distribution.

        Its mean is the generated image, its std is `model.deviation`. Noise is as in `evaluate`.
        """
        require_examples(examples)
        if not examples:
            return []
        images = self.generate(examples, has_noise=True)
        log_probs = self._log_densities(images.values, images.targets).tolist()
        return [_prediction(*pair) for pair in zip(images.targets, log_probs, strict=True)]

    def _log_densities(self, means: Tensor, targets: Tensor) -> Tensor:
        return log_densities(means, targets, std=self.recipe.model.deviation)

    def image_grid(self, source: Any, target: str | None = None) -> list[CaptionedImage]:
        """Return the source, with the noise of the recipe, the generated image and the target."""
        return image_tiles(self.generate([Example(source, target or source)], has_noise=True))

    def encode(self, sources: Sequence[str]) -> Tensor:
        """Return the latents of sources, (B, D), float32, on the host: all states flattened."""
        require_list(sources, "sources")
        if not sources:
            return torch.zeros(0, self.latent_dim)
        examples = [Example(source, source) for source in sources]

        @torch.inference_mode()
        def encode(batch: LabelledBatch) -> Tensor:
            inputs = self.standardise(self.pixels(batch, examples))
            return self.model.encoder(inputs, batch.source_mask).states.flatten(1).float().cpu()

        return torch.stack(
            map_batches(encode, self.batches(examples), description="Encoding", total=len(examples))
        )

    def decode(self, latents: Tensor) -> Tensor:
        """Return the 8-bit images (B, C, Y, X) of latents (B, D)."""
        if self.model.is_residual:
            raise ConfigError(
                "`model.is_residual` must be false to decode latents, since a residual model adds "
                "to the source image, but is true. Train a model without it."
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
            has_noise: Whether to add the noise of the recipe, always the same for a source.
        """
        pixels: Tensor = batch.source.to(self.device).float() / 255
        if not has_noise:
            return pixels
        paths = [examples[row].source for row in batch.rows]
        data = self.recipe.data
        return add_fixed_noise(pixels, data.noise, paths, seed=data.seed)

    def standardise(self, pixels: Tensor) -> Tensor:
        """Standardise sources from 0 to 1 as encoder inputs."""
        return self.source.standardize(pixels)

    def to_target_form(self, pixels: Tensor) -> Tensor:
        """Convert sources from 0 to 1 to the shape of the target, (B, C, Y, X)."""
        return convert_images(pixels, self.target.spec.shape)

    def _forward(self, pixels: Tensor, mask: Tensor) -> ImageOutput:
        return self.model(self.standardise(pixels), mask, self.to_target_form(pixels))

    def generate(self, examples: Sequence[Example], *, has_noise: bool = False) -> GeneratedImages:
        """Generate the images of examples, in the order given."""

        @torch.inference_mode()
        def generate(batch: LabelledBatch) -> Iterable[tuple[Tensor, ...]]:
            pixels = self.pixels(batch, examples, has_noise=has_noise)
            output = self._forward(pixels, batch.source_mask)
            images = GeneratedImages(
                values=output.images,
                targets=batch.labels,
                sources=to_bytes(pixels),
                baseline=to_bytes(self.to_target_form(pixels)),
                losses=pixels.new_zeros(len(pixels)) + sum(output.losses.values()),
            )
            return zip(*(getattr(images, one.name).cpu() for one in fields(images)), strict=True)

        rows = map_batches(generate, self.batches(examples), total=len(examples))
        return GeneratedImages(*map(torch.stack, zip(*rows, strict=True)))


def _prediction(pixels: Tensor, log_prob: float) -> Prediction:
    """Return a prediction from an 8-bit image (C, Y, X)."""
    text = f"image of {' x '.join(map(str, pixels.shape[1:]))} pixels"
    return Prediction(text, log_prob, (), (), image=to_image(pixels))

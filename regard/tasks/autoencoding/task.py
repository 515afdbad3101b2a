"""Text autoencoders: a text in, the same text out, through a latent vector."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example, require_list
from regard.data.text.corruption import Change
from regard.data.text.field import Text, TextField, both_sides
from regard.data.text.noise import WordNoise
from regard.data.text.tokenizers import with_mask
from regard.data.text.vocabulary import train_tokenizer
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result
from regard.metrics.text.bleu import bleu
from regard.models.encoders.bottleneck import BottleneckEncoder, memory_from_latents
from regard.search.settings import SearchConfig
from regard.tasks.autoencoding.reading import read_plain_text_split, read_plain_texts
from regard.tasks.autoencoding.recipe import AutoencodingRecipe
from regard.tasks.base import Fields
from regard.tasks.batches import map_batches
from regard.tasks.evaluation import Evaluation
from regard.tasks.generation.recipe import limit_targets
from regard.tasks.generation.task import Predictor
from regard.tasks.latents import check_latents, measure_elbo
from regard.training.losses import log_probs_of
from regard.training.validation import Validation

CHUNK = 64
"""Number of latents to decode at once."""


class AutoencodingTask(Predictor):
    """Reconstructs texts from latents (Dai & Le 2015; Hill et al. 2016; Bowman et al. 2016).

    The maximum length of a target is that of training texts. `search.max_ratio` and
    `search.max_extra` have no effect, since a latent vector has no length.
    """

    recipe: AutoencodingRecipe
    source: TextField

    read = staticmethod(read_plain_texts)
    read_split = staticmethod(read_plain_text_split)
    run_description = "of an autoencoder of texts"

    @property
    def bottleneck_encoder(self) -> BottleneckEncoder:
        """The encoder with its bottleneck."""
        encoder = self.model.encoder
        assert isinstance(encoder, BottleneckEncoder)
        return encoder

    @property
    def latent_dim(self) -> int:
        """Number of values of a latent vector."""
        return self.bottleneck_encoder.memory_dim

    @classmethod
    def fit_fields(cls, recipe: Any, examples: Sequence[Example]) -> Fields:
        """Fit one vocabulary."""
        config = recipe.data.source
        if recipe.data.noise.mask:
            config = with_mask(config)
        return {**both_sides(train_tokenizer(config, [example.source for example in examples]))}

    def change_pairs(self, seed: int) -> Change | None:
        """Return a function that adds other noise to the sources in every epoch, or None."""
        config = self.recipe.data.noise
        return WordNoise(config, self.source.tokenizer, seed=seed).change if config.is_any else None

    def corrupted_batches(self, examples: Sequence[Example]) -> list[Batch]:
        """Return batches whose noise does not depend on the run's seed."""
        texts = [example.source for example in examples]
        sources, targets = self.source.read_all(texts), self.target.read_all(texts)
        change = self.change_pairs(self.recipe.data.seed)
        return list(self.pair_batches(sources, targets, change=change, is_shuffled=False).epoch(0))

    def decoder_inputs(self, tokens: Tensor) -> Tensor:
        """Return true tokens (B, T), some of them replaced by the unknown token in training."""
        word_dropout = self.recipe.data.word_dropout
        if not self.model.training or not word_dropout:
            return tokens
        is_dropped = torch.rand(tokens.shape, device=tokens.device) < word_dropout
        is_dropped[:, 0] = False  # the start token
        return tokens.masked_fill(is_dropped, self.target.tokenizer.unk)

    def mean_nll(self, batches: Any) -> float:
        """Return the mean loss per token of batches, bottleneck losses included, in nats."""
        losses = [self.loss(batch) for batch in batches]
        total = sum(loss.total.detach() for loss in losses)
        return float(total / sum(loss.count for loss in losses))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that validates texts within the maximum length of training."""
        targets = self.target.read_all([example.target for example in examples])
        limit = self.recipe.data.batch.max_length
        short = [one for one, ids in zip(examples, targets, strict=True) if len(ids) <= limit]
        return super().validation(short or examples)

    def max_lengths(self, source_mask: Tensor, config: SearchConfig) -> Tensor:
        """Return the maximum number of target tokens, (B,): that of training for every source."""
        return self._max_lengths(len(source_mask))

    def _max_lengths(self, num: int) -> Tensor:
        lengths = torch.full((num,), self.recipe.data.batch.max_length)
        return limit_targets(lengths, self.recipe.model)

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Reconstruct test texts from their latents, and measure texts and latents."""
        evaluation = super().evaluate(examples, num_bootstrap=num_bootstrap)
        results = dict(evaluation.results)
        results["token_accuracy"] = self._measure_tokens(examples, num_bootstrap=num_bootstrap)
        num_tokens = sum(len(ids) - 1 for ids in self.target.read_all([e.target for e in examples]))
        elbo = measure_elbo(
            self,
            examples,
            split=self._split_at_bottleneck,
            signature=f"nats a text|texts:{len(examples)}|vocab:{self.target.tokenizer.vocab_size}",
            per={"per_token": num_tokens},
            num_bootstrap=num_bootstrap,
        )
        if elbo:
            elbo["elbo"].detail["tokens"] = float(num_tokens)
        results |= elbo
        if self.recipe.data.noise.is_any:
            results |= self._measure_denoising(examples, num_bootstrap=num_bootstrap)
        return replace(evaluation, results=results)

    def _measure_tokens(self, examples: Sequence[Example], *, num_bootstrap: int) -> Result:
        """Measure the accuracy of the next token under teacher forcing, end tokens included."""

        @torch.inference_mode()
        def count(batch: Batch) -> list[tuple[float, int]]:
            target, mask = batch.target.to(self.device), batch.target_mask[:, 1:]
            output = self.model.decoder(target[:, :-1], self.encode_batch(batch))
            hits = (output.logits.argmax(-1) == target[:, 1:]).cpu() & mask
            return list(zip(hits.sum(1).float().tolist(), mask.sum(1).tolist(), strict=True))

        hits, lengths = zip(*map_batches(count, self.batches(examples)), strict=True)
        vocab_size = self.target.tokenizer.vocab_size
        signature = f"tokens:{sum(lengths)}|vocab:{vocab_size}|ends:counted|teacher-forced"
        name = "token accuracy"
        return ratio(name, hits, lengths, signature=signature, num_bootstrap=num_bootstrap)

    def _split_at_bottleneck(self, batch: Batch) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Return the states before the bottleneck, and a function from latents to log-probs."""
        target, mask = batch.target.to(self.device), batch.target_mask[:, 1:]

        def compute_log_probs(latents: Tensor) -> Tensor:
            logits = self.model.decoder(target[:, :-1], memory_from_latents(latents)).logits
            return log_probs_of(logits, target[:, 1:]).cpu().where(mask, 0.0).sum(1)

        memory = self.bottleneck_encoder.inner_memory(self.inputs(batch), batch.source_mask)
        return memory.summary, compute_log_probs

    def _measure_denoising(
        self, examples: Sequence[Example], *, num_bootstrap: int
    ) -> dict[str, Result]:
        """Measure the reconstruction of corrupted texts, always with the same noise."""
        config = self.search

        @torch.inference_mode()
        def restore(batch: Batch) -> list[tuple[str, str]]:
            lengths = self.max_lengths(batch.source_mask, config)
            hypotheses = self.generate(self.encode_batch(batch), config, max_lengths=lengths)
            return [
                (self.target.write(best[0].tokens), self.source.write(source))
                for best, source in zip(hypotheses, batch.source.tolist(), strict=True)
            ]

        texts = zip(*map_batches(restore, self.corrupted_batches(examples)), strict=True)
        references = [[example.target] for example in examples]
        noise = self.recipe.data.noise
        prefix = f"drop:{noise.drop:g}|swap:{noise.swap:g}|mask:{noise.mask:g}"
        names = {
            "restored_bleu": "BLEU of the restored texts",
            "corrupted_bleu": "BLEU of the corrupted texts",
        }
        results = {}
        for (key, name), outputs in zip(names.items(), texts, strict=True):
            score = bleu(outputs, references, num_bootstrap=num_bootstrap)
            results[key] = Result(name, score.value, f"{prefix}|{score.signature}", score.interval)
        return results

    def encode(self, sources: Sequence[Text]) -> Tensor:
        """Return the latents of texts, (B, D), float32, on the host."""
        require_list(sources, "sources")
        if not sources:
            return torch.zeros(0, self.latent_dim)

        @torch.inference_mode()
        def encode(batch: Batch) -> Tensor:
            return self.encode_batch(batch).summary.float().cpu()

        batches = self.batches([Example(one) for one in sources])
        return torch.stack(map_batches(encode, batches, description="Encoding"))

    def decode(self, latents: Tensor, *, search: SearchConfig | None = None) -> list[str]:
        """Return texts from latents (B, D).

        Args:
            latents: As `encode` returns them, or any others.
            search: The search settings; those of the recipe if not given.
        """
        check_latents(latents, self.latent_dim)
        texts: list[str] = []
        for chunk in torch.split(latents, CHUNK) if len(latents) else ():
            hypotheses = self.generate(
                memory_from_latents(chunk.to(self.device, torch.float32)),
                search or self.search,
                max_lengths=self._max_lengths(len(chunk)),
                numbers=range(len(texts), len(texts) + len(chunk)),
            )
            texts += [self.target.write(best[0].tokens) for best in hypotheses]
        return texts

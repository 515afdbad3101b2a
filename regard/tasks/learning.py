"""Training as a whole: from a data set or a file of pairs to a run folder."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.core.config import to_dict
from regard.core.device import find_device, find_dtype, seed_everything
from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import write_json
from regard.core.log import logger
from regard.data.batches import Batch
from regard.data.batching import Batches, limit_lengths
from regard.data.examples import Example
from regard.data.readers import write_examples
from regard.data.splitting import Splits
from regard.data.tokenizers import Tokenizer, train_tokenizer
from regard.metrics.text import bleu
from regard.search.beam import SearchConfig
from regard.tasks import runs
from regard.tasks.evaluation import Evaluation, evaluate
from regard.tasks.predictor import Predictor
from regard.tasks.recipe import DataConfig, Recipe
from regard.tasks.request import Request
from regard.training.journal import Display
from regard.training.loop import Summary, Trainer, Validation
from regard.training.loss import Loss, cross_entropy


@dataclass(frozen=True)
class Trained:
    """What training leaves behind."""

    folder: Path
    """The run folder."""
    predictor: Predictor
    """The model with its best weights."""
    summary: Summary
    """How training ended."""
    evaluation: Evaluation | None
    """What was measured on the test set; absent if training was interrupted."""


def train(request: Request, *, display: Display | None = None) -> Trained:
    """Train a model and measure it.

    Args:
        request: What data, what recipe, where to.
        display: What a person sees; a progress bar or plain lines if not given.
    """
    request.check_folder()
    device = find_device(request.device)
    recipe, splits = request.resolve()
    logger.info("Data: %s.", splits.note)
    predictor = _open(request, recipe, splits, device=device)
    batches = _training_batches(predictor, splits.train)
    trainer = Trainer(
        predictor.model,
        recipe.train,
        request.out,
        batches=batches,
        loss=loss_function(predictor),
        validate=validation_function(predictor, splits.valid),
        display=display,
    )
    _introduce(predictor, batches)
    if request.is_resumed:
        trainer.resume()
    else:
        # Only now, when nothing can be refused any more, is anything written.
        _save_start(request, predictor, splits)
        seed_everything(recipe.seed)
    summary = trainer.run()
    predictor.model.eval()
    logger.info("Trained for %.0f s (%s).", summary.progress.seconds, summary.stopped)
    if summary.stopped == "interrupted":
        return Trained(request.out, predictor, summary, None)
    evaluation = evaluate(predictor, splits.test, num_bootstrap=200)
    save_metrics(request.out, predictor, evaluation, summary=summary)
    return Trained(request.out, predictor, summary, evaluation)


def save_metrics(
    folder: Path, predictor: Predictor, evaluation: Evaluation, *, summary: Summary
) -> None:
    """Write what was measured and how, and what was answered, beside the weights."""
    progress = summary.progress
    write_json(folder / runs.PREDICTIONS, evaluation.outputs)
    write_json(
        folder / runs.METRICS,
        {
            **runs.describe_making(predictor.device),
            "seed": predictor.recipe.seed,
            "parameters": predictor.num_parameters,
            "training": {
                "stopped": summary.stopped,
                "steps": progress.step,
                "epochs": progress.epoch,
                "best_step": progress.best_step,
                "seconds": round(progress.seconds, 1),
                "target_tokens": progress.tokens,
                "tokens_per_second": round(progress.tokens / max(progress.seconds, 1e-9), 1),
            },
            "search": to_dict(predictor.recipe.search),
            "test": evaluation.to_dict(),
        },
    )


def loss_function(predictor: Predictor) -> Callable[[Batch], Loss]:
    """Return what a batch costs: the average cross entropy of the next token."""
    config, model, device = predictor.recipe.train, predictor.model, predictor.device
    dtype = find_dtype(config.precision, device)

    def loss(batch: Batch) -> Loss:
        batch = batch.to(device)
        forcing = config.teacher_forcing if model.training else 1.0
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            output = model(
                batch.source, batch.source_mask, batch.target[:, :-1], teacher_forcing=forcing
            )
        return cross_entropy(
            output.logits,
            batch.target[:, 1:],
            batch.target_mask[:, 1:],
            smoothing=config.label_smoothing if model.training else 0.0,
        )

    return loss


def validation_function(
    predictor: Predictor, examples: Sequence[Example]
) -> Callable[[], Validation]:
    """Return how good the model is now: BLEU of greedy translations, and the loss."""
    config = predictor.recipe.validation
    loss = loss_function(predictor)
    batches = predictor.batches(examples)
    # Evenly from the whole set, which may be sorted by length.
    asked = examples[:: -(-len(examples) // config.max_examples)]
    references = [[example.target, *example.references] for example in asked]

    def validate() -> Validation:
        losses = [loss(batch) for batch in batches]
        nll = float(sum(found.nll for found in losses) / sum(found.count for found in losses))
        outputs = predictor.translate(
            [example.source for example in asked], search=SearchConfig(beams=1)
        )
        score = bleu(outputs, references).value
        value = score if config.metric == "bleu" else -nll
        return Validation(value=value, numbers={"loss": nll, "bleu": score})

    return validate


def _introduce(predictor: Predictor, batches: Batches) -> None:
    """Say what is about to be trained."""
    logger.info(
        "Model: %s parameters, %s source and %s target tokens; %.0f %% of a batch is padding.",
        f"{predictor.num_parameters:,}",
        f"{predictor.source.tokenizer.vocab_size:,}",
        f"{predictor.target.tokenizer.vocab_size:,}",
        100 * batches.padded_share(),
    )


def _open(request: Request, recipe: Recipe, splits: Splits, *, device: torch.device) -> Predictor:
    """Make the predictor anew, or take it from the run that goes on."""
    if request.is_resumed:
        about = runs.read_config(request.out)["about"]
        if about["data_fingerprint"] != _fingerprint(splits):
            raise CheckpointError(
                f"{request.out} was trained on other data than {' '.join(request.data)}. "
                "Resume with the data it began with."
            )
        predictor = runs.load_untrained(request.out, device)
        _check_resumed(recipe, predictor.recipe)
        return Predictor(
            recipe,
            predictor.model,
            source=predictor.source.tokenizer,
            target=predictor.target.tokenizer,
            device=device,
        )
    source, target = _train_tokenizers(recipe.data, splits.train)
    return Predictor.fresh(recipe, source=source, target=target, device=device)


def _check_resumed(asked: Recipe, saved: Recipe) -> None:
    """Raise if a run is to go on as another model or with other data."""
    for section in ("model", "data", "seed"):
        if getattr(asked, section) != getattr(saved, section):
            raise ConfigError(
                f"`{section}` cannot change when a run is resumed; only `train`, `validation` and "
                "`search` can. Leave the setting out, or train anew with --force."
            )


def _save_start(request: Request, predictor: Predictor, splits: Splits) -> None:
    """Write what is known of a run before it begins, in place of what an earlier one left."""
    about = {
        **runs.describe_making(predictor.device),
        "data": list(request.data),
        "data_note": splits.note,
        "data_fingerprint": _fingerprint(splits),
    }
    runs.save_start(request.out, predictor, about)
    write_examples(request.out / runs.TEST, splits.test)


def _train_tokenizers(
    config: DataConfig, examples: Sequence[Example]
) -> tuple[Tokenizer, Tokenizer]:
    sources = [example.source for example in examples]
    targets = [example.target for example in examples]
    if config.is_joint:
        joint = train_tokenizer(config.source, [*sources, *targets])
        return joint, joint
    return train_tokenizer(config.source, sources), train_tokenizer(config.target, targets)


def _training_batches(predictor: Predictor, examples: Sequence[Example]) -> Batches:
    config = predictor.recipe.data.batch
    sources, targets, _ = limit_lengths(
        predictor.source.read_all([example.source for example in examples]),
        predictor.target.read_all([example.target for example in examples]),
        config,
    )
    return Batches(
        sources,
        targets,
        config,
        fields=(predictor.source, predictor.target),
        seed=predictor.recipe.seed,
        is_pinned=predictor.device.type == "cuda",
    )


def _fingerprint(splits: Splits) -> str:
    digest = hashlib.sha256()
    for side in (splits.train, splits.valid, splits.test):
        for example in side:
            digest.update(f"{example.source}\t{example.target}\n".encode())
        digest.update(b"\0")
    return digest.hexdigest()

"""Training of a run: from a data set or a file of pairs to a run folder."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.core.checksums import find_fault, listed_files, write_listed_json
from regard.core.config import to_dict
from regard.core.device import find_device, release_memory, seed_everything
from regard.core.errors import CheckpointError, ConfigError
from regard.core.files import remove_leftovers
from regard.core.logging import default_logging, logger
from regard.data.corpus import sample
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.dialogue import has_turns
from regard.runs.auto_tokens import MAX_INSPECTED
from regard.runs.fingerprint import fingerprint, has_fingerprint
from regard.runs.folder import (
    AVERAGES,
    METRICS,
    PREDICTIONS,
    WEIGHTS,
    check_links,
    complete_folder,
    initialize_folder,
    load_one,
    load_untrained,
    prepare_to_resume,
    record_changes,
)
from regard.runs.lock import FolderLock, FolderWatch
from regard.runs.max_tokens import choose_max_tokens, with_max_tokens
from regard.runs.provenance import describe_provenance
from regard.runs.report import write_report
from regard.runs.request import Request
from regard.runs.saved.config import CONFIG, read_config
from regard.runs.saved.precision import attach_finder, without_auto
from regard.runs.training_samples import SampleLog
from regard.tasks.base import Task
from regard.tasks.evaluation import Evaluation
from regard.tasks.notebook import facts_html
from regard.tasks.recipe import BaseRecipe
from regard.tasks.table import task_class, to_recipe
from regard.training.distributed.joining import find_launch, find_processes, join_processes
from regard.training.distributed.processes import Processes
from regard.training.loggers.display import choose_display
from regard.training.loggers.logger import Logger
from regard.training.loop import Trainer
from regard.training.plan import Plan
from regard.training.progress import Summary


@dataclass(frozen=True)
class TrainingResult:
    """Result of a training."""

    folder: Path
    """The run folder."""
    predictor: Any
    """The `Task` with its best weights."""
    summary: Summary
    """Summary of the training loop."""
    evaluation: Evaluation | None
    """Evaluation on the test set; None if training was interrupted."""
    report: Path | None = None
    """The HTML report; None if training was interrupted or the report could not be written."""

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._facts.items())
        return f"TrainingResult({facts})\n{self.evaluation or ''}".rstrip()

    def _repr_html_(self) -> str:
        results = "" if self.evaluation is None else self.evaluation._repr_html_()
        return f"{facts_html('Training', self._facts)}\n{results}"

    @property
    def _facts(self) -> dict[str, str]:
        progress = self.summary.progress
        facts = {
            "folder": str(self.folder),
            "steps": f"{progress.step:,}",
            "best step": f"{progress.best_step:,}",
            "seconds": f"{progress.seconds:,.0f}",
            "stopped": self.summary.stopped,
        }
        return facts if self.report is None else {**facts, "report": str(self.report)}


def train(
    request: Request, *, display: Logger | None = None, loggers: Sequence[Logger] = ()
) -> TrainingResult:
    """Train a model and evaluate it on the test set.

    Args:
        request: Data, recipe and run folder.
        display: Progress display; if not given, a progress bar on a terminal or in a notebook, and
            log lines elsewhere.
        loggers: Further receivers of the events of training, such as `TensorBoardLogger`.
    """
    if not isinstance(request, Request):
        raise TypeError(
            f"`request` must be a `regard.Request(data=…)`, but is {request!r:.60} "
            f"({type(request).__name__})."
        )
    with default_logging(), ExitStack() as stack:
        with join_processes(request.device) as processes:
            is_restarted = processes.is_restarted()
            watches: list[Logger] = []

            def claim() -> tuple[bool, bool]:
                if not request.out.is_dir():
                    request.check_folder()  # before the lock creates the folder
                lock = stack.enter_context(_lock(request.out))
                watches.append(FolderWatch(lock))
                claimed = _check_folder(request, is_restarted=is_restarted, is_left=lock.is_left)
                return claimed.is_resumed, claimed.is_forced

            # Only the first process, which alone writes to the folder.
            is_resumed, is_forced = processes.from_first(claim)
            if is_resumed and not request.is_resumed:
                request = request.resume_if_started()
            request = replace(request, is_resumed=is_resumed, is_forced=is_forced)
            all_loggers = [*watches, display or choose_display(), *loggers]
            task, splits, summary = _fit(request, processes, all_loggers)
        task.model.eval()
        attach_finder(task, request.out / WEIGHTS)
        release_memory()
        result = TrainingResult(request.out, task, summary, None)
        if processes.is_first:
            if summary.stopped != "interrupted":
                result = _evaluate(request.out, task, splits, summary=summary)
            complete_folder(request.out)
        return result


@contextmanager
def _lock(folder: Path) -> Iterator[FolderLock]:
    """Lock a run folder during a block."""
    with FolderLock(folder) as lock:
        try:
            yield lock
        finally:
            lock.check()  # the cause of any other error


def _check_folder(request: Request, *, is_restarted: bool, is_left: bool) -> Request:
    """Check the locked run folder; return a request that resumes if `torchrun` has restarted it.

    A run that was killed before it wrote anything starts anew instead of being resumed.

    Args:
        request: The request.
        is_restarted: Whether `torchrun` has restarted the processes. Only a run of the same launch
            is resumed; any other one is refused as always.
        is_left: Whether a training that was killed has left its lock in the folder.
    """
    has_config = (request.out / CONFIG).exists()
    if is_restarted and has_config:
        launch = read_config(request.out)["about"].get("launch")
        request = request.resume_if_started() if launch == find_launch() else request
    if request.is_resumed and is_left and not has_config:
        logger.info(
            "%s was stopped before its settings were written. Training starts anew, with the "
            "settings of this command.",
            request.out,
        )
        request = replace(request, is_resumed=False)
    request.check_folder()
    check_links(request.out)
    for folder in (request.out, request.out / AVERAGES):
        remove_leftovers(folder)
    if request.is_resumed:
        prepare_to_resume(request.out)
    return request


def _fit(
    request: Request, processes: Processes, loggers: Sequence[Logger]
) -> tuple[Task[Any], Splits, Summary]:
    """Read the data and train the model; batches and optimiser are freed before the evaluation."""
    # What the first process of a machine reads and tokenises, the others find in the cache.
    with processes.in_turn():
        recipe, splits = request.resolve()
        logger.info("Data: %s.", splits.note)
        request = request.restart_if_unsaved()
        task = _open(request, recipe, splits)
        samples = SampleLog(request.out, task, splits.valid)
        trainer = _build_trainer(request, task, splits, loggers=[*loggers, samples])
    processes.wait()  # The others read the folder, in which the first one may replace a run.
    if request.is_resumed and processes.is_first:
        record_changes(request.out, task.recipe, step=trainer.progress.step)
    if not request.is_resumed:
        if processes.is_first:
            # Write only after all checks have passed.
            _initialize_folder(request, task, splits, plan=trainer.plan)
        seed_everything(task.recipe.seed)
    return task, splits, trainer.run()


def _build_trainer(
    request: Request, task: Task[Any], splits: Splits, *, loggers: Sequence[Logger]
) -> Trainer:
    """Build the trainer of a task, with the state of a run that is resumed."""
    batches = task.training_batches(splits.train)
    if task.recipe.data.batch.max_tokens == "auto":
        if find_processes().num > 1:
            raise ConfigError(
                "`data.batch.max_tokens` must be a number for several processes, as it is the size "
                "of a batch of all of them, but is 'auto'."
            )
        batches = choose_max_tokens(task, batches)
    trainer = Trainer(
        task.model,
        task.recipe.train,
        request.out,
        batches=batches,
        loss=task.training_loss(splits.train),
        validate=task.validation(splits.valid),
        loggers=loggers,
        unit=task.throughput_unit,
    )
    if request.is_resumed:
        trainer.resume()
        _forget_damaged_weights(request.out, trainer)
    return trainer


def _evaluate(folder: Path, task: Task[Any], splits: Splits, *, summary: Summary) -> TrainingResult:
    """Evaluate a trained model, and write the results and a report into the run folder."""
    measured = without_auto(task)
    evaluation = measured.evaluate(splits.test, num_bootstrap=200)
    save_metrics(folder, measured, evaluation, summary=summary)
    report = _try_report(folder, measured, evaluation, examples=splits.test)
    return TrainingResult(folder, task, summary, evaluation, report)


def _forget_damaged_weights(folder: Path, trainer: Trainer) -> None:
    """Let the next validation write the best weights again if they are damaged or missing."""
    path = folder / WEIGHTS
    if path.is_dir():
        raise CheckpointError(f"{path} must be a file, but is a folder. Remove it.")
    fault = find_fault(path) if path.exists() else "is missing"
    if not fault and path not in listed_files(folder):  # not even when training was resumed
        fault = "is damaged"
    if fault and trainer.progress.best is not None:
        logger.warning("%s %s. The next validation writes it again.", path, fault)
        trainer.progress.best = trainer.progress.best_loss = None


def _try_report(
    folder: Path, task: Task[Any], evaluation: Evaluation, *, examples: Sequence[Example]
) -> Path | None:
    """Write the report of a trained run; an error is logged, as the run itself is complete."""
    try:
        return write_report(folder, task, evaluation, examples=examples)
    except Exception as error:
        logger.warning(
            "The report could not be written (%s: %s).%s",
            type(error).__name__,
            error,
            f" `regard report {folder}` writes it again." if _is_readable(task.recipe) else "",
        )
        logger.debug("Traceback of the report:", exc_info=True)
        return None


def _is_readable(recipe: BaseRecipe) -> bool:
    """Return whether commands can read a saved recipe: all its settings are of the package."""
    try:
        return to_recipe(to_dict(recipe)) == recipe
    except ConfigError:
        return False


def save_metrics(
    folder: Path, task: Task[Any], evaluation: Evaluation, *, summary: Summary
) -> None:
    """Write metrics, provenance and predictions of the test set to the run folder."""
    progress = summary.progress
    search = getattr(task.recipe, "search", None)
    write_listed_json(folder / PREDICTIONS, evaluation.outputs)
    write_listed_json(
        folder / METRICS,
        {
            **describe_provenance(task.device),
            "seed": task.recipe.seed,
            "parameters": task.num_parameters,
            "training": {
                "stopped": summary.stopped,
                "steps": progress.step,
                "epochs": progress.epoch,
                "best_step": progress.best_step,
                "seconds": round(progress.seconds, 1),
                "target_tokens": progress.tokens,
                "tokens_per_second": round(progress.tokens / max(progress.seconds, 1e-9), 1),
            },
            **({"search": to_dict(search)} if search is not None else {}),
            "test": evaluation.to_dict(),
        },
    )


def _open(request: Request, recipe: BaseRecipe, splits: Splits) -> Task[Any]:
    """Prepare a new task, or load that of the run to be resumed."""
    device = find_device(request.device)
    if not request.is_resumed:
        init_from = load_one(recipe.init_from, str(device)) if recipe.init_from else None
        kind = task_class(recipe)
        return kind.prepare(recipe, splits.train, device=device, init_from=init_from)
    about = read_config(request.out)["about"]
    if not has_fingerprint(splits, about["data_fingerprint"]):
        raise CheckpointError(
            f"{request.out} was trained on other data than {' '.join(request.data)}. "
            "Resume with the same data."
        )
    given_recipe = recipe if isinstance(request.recipe, BaseRecipe) else None
    task = load_untrained(request.out, device, recipe=given_recipe)
    if recipe.data.batch.max_tokens == "auto":
        recipe = with_max_tokens(recipe, task.recipe.data.batch.max_tokens)
    _check_resumed(recipe, task.recipe)
    task.recipe = recipe
    return task


def _check_resumed(requested: BaseRecipe, saved: BaseRecipe) -> None:
    """Raise if a run would be resumed with another model or other data."""
    for section in ("task", "model", "data", "seed"):
        if getattr(requested, section, None) != getattr(saved, section, None):
            raise ConfigError(
                f"`{section}` cannot change when a run is resumed; only `train`, `validation`, "
                "`search` and `reward` can. Leave the setting out, or train again with --force."
            )


def _initialize_folder(request: Request, task: Task[Any], splits: Splits, *, plan: Plan) -> None:
    """Write settings, provenance and the test set; delete results of an earlier run."""
    about = {
        **describe_provenance(task.device),
        **({"launch": launch} if (launch := find_launch()) else {}),
        "data": list(request.data),
        "valid": list(request.valid),
        "test": list(request.test),
        "recipe": _recipe_name(request),
        "data_note": splits.note,
        "data_fingerprint": fingerprint(splits),
        "batches_per_epoch": plan.batches_per_epoch,
        "has_turns": has_turns(example.source for example in sample(splits.train, MAX_INSPECTED)),
    }
    initialize_folder(request.out, task, about, test=splits.test)


def _recipe_name(request: Request) -> str | None:
    """Return the name of the recipe; None if it is an object or was chosen by the data."""
    return request.recipe if isinstance(request.recipe, str) else None

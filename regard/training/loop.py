"""The training loop: step, accumulate, clip, validate, stop, resume."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.device import release_memory
from regard.core.eager import force_eager
from regard.core.errors import RegardError
from regard.core.logging import logger
from regard.training import checkpoint
from regard.training.activations import checkpoint_blocks
from regard.training.compilation import Compiler
from regard.training.distributed.joining import find_processes
from regard.training.gradients import CapturedGradients, Gradients, own_stream
from regard.training.loggers.display import choose_display
from regard.training.loggers.logger import Logger
from regard.training.logs import MAX_RETURNS, Meter, Skipped, describe_remedies, open_log
from regard.training.losses import Loss
from regard.training.optimizers import build_optimizer, freeze, set_training
from regard.training.plan import Batches, build_plan, is_validation_due, reason_to_stop
from regard.training.prefetch import prefetch
from regard.training.progress import Progress, Reason, Summary
from regard.training.saved_state import check_state
from regard.training.saving import build_saver
from regard.training.schedules import build_schedule
from regard.training.settings import TrainConfig
from regard.training.updates.averages import Averages, average_weights
from regard.training.updates.ema import MovingAverage
from regard.training.updates.skippable import build_updates
from regard.training.validation import Validation, report_overfitting


class Trainer:
    """Trainer of any model; the caller provides the batches and the loss function.

    Writes `model.safetensors` (the best weights), the training log `journal.jsonl` and `resume`
    (the training state) to the run folder.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        run: Path,
        *,
        batches: Batches,
        loss: Callable[[Any], Loss],
        validate: Callable[[], Validation],
        loggers: Sequence[Logger] | None = None,
        unit: str = "tok",
    ) -> None:
        """Set up training without writing to the run folder.

        Args:
            model: On its device; has the best weights after `run`.
            config: Training settings. `label_smoothing`, `teacher_forcing` and `precision` are not
                used here; the `loss` function applies them.
            run: The run folder.
            batches: The training data.
            loss: Computes the loss of a batch.
            validate: Evaluates the model; called in evaluation mode, without gradients.
            loggers: Receivers of events; if not given, a progress bar or log lines.
            unit: Unit of `num_target_tokens` in the progress display.
        """
        self.progress = Progress()
        self._model = model
        self._config = config
        self._run = run
        self._processes = find_processes(config.parallel)
        self._batches = self._processes.share(batches)
        self._loss = self._processes.weigh(loss)
        self._validation = validate
        freeze(model, config.freeze)
        if config.checkpoint_activations:
            checkpoint_blocks(model)
        self._device = next(model.parameters()).device
        self._reset_optimizer()
        self.plan = build_plan(config, batches, unit=unit)
        self._schedule = build_schedule(config.schedule, self.plan.total_steps)
        loggers = [choose_display()] if loggers is None else loggers
        self._log_file = open_log(run, loggers, is_written=self._processes.is_first)
        self._interrupts = self._processes.interrupts
        self._saver = build_saver(config, run, is_writing=self._processes.is_first)
        self._averages = Averages(run / "averages", config.average_last)
        self._ema = MovingAverage(model, config.ema_decay)
        self._meter = Meter(self._device)
        self._skipped = Skipped()
        self._has_checkpoint = False
        self._is_eager = config.checkpoint_activations or not self._processes.is_divisible
        self._gradients = self._choose_gradients()
        choice = "never" if self._is_eager else config.compile
        self._compiler = Compiler(model, choice, self.plan, device=self._device)
        self._num_parts = 1  # parts that a batch is split into, more after an out-of-memory error

    def resume(self) -> None:
        """Restore the training state saved in the run folder."""
        snapshot = checkpoint.load_training(self._run, self._model, self._optimizer)
        state = snapshot.state
        check_state(state, f"The training state of {self._run}")
        self.progress = Progress(**state["progress"])
        self._meter.restore(state["meter"])
        self._schedule.restore(state["schedule"])
        self._ema.restore(snapshot.averages)
        self._has_checkpoint = True

    def run(self) -> Summary:
        """Train until a limit is reached or the run is interrupted (Ctrl-C or SIGTERM).

        To continue later, build a new trainer and call `resume` before `run`.
        """
        self._start_processes()
        self._remove_later_steps()
        self._started = time.perf_counter() - self.progress.seconds
        plan = replace(self.plan, step=self.progress.step, seconds=self.progress.seconds)
        with (
            self._saver.opened(self.progress.step, self.progress.seconds),
            self._interrupts,
            self._log_file.opened(plan),
            self._compiler,
            own_stream(self._device),
        ):
            try:
                if self.progress.step == 0 and self._saver.is_periodic:
                    self._save()  # training may have to return to its start
                stopped: Reason = self._train()
                if (skipped := self._meter.skipped()).num:
                    logger.warning("%s.", skipped.describe(self.progress.step))
                with self._processes.whole(self._model):
                    self._try_average()
            except KeyboardInterrupt:
                stopped = "interrupted"
            self._interrupts.ignore()
            self._ema.remove()  # of an interrupted validation
            self._try_save() if stopped == "interrupted" else self._save()
            self._saver.wait()
            if self.progress.best is None:
                self._ema.apply()
                self._save_weights()
            self._write("stop", {"reason": stopped})
        self._gradients.reset()
        self._processes.finish(self._model)
        if self._processes.is_first:
            checkpoint.load_weights(self._model, self._run / "model.safetensors")
        self._processes.copy_weights(self._model)
        return Summary(stopped, self.progress)

    def _train(self) -> Reason:
        set_training(self._model)
        groups = self._groups()
        while True:
            if is_validation_due(self._config, self.progress):
                self._validate()
            elif self._saver.is_due(self.progress.step, self._processes.agreed(self._seconds())):
                self._try_save()
            seconds = self._processes.agreed(self._seconds())
            if stopped := reason_to_stop(self._config, self.progress, seconds):
                break
            with self._meter.waiting():
                group = next(groups, None)
            if group:
                self._step(group)
                if self._skipped.is_repeated:
                    self._return_to_checkpoint()
                    groups = self._groups()
            else:
                self.progress.epoch += 1
                self.progress.position = 0
                groups = self._groups()
        if self.progress.validated_step != self.progress.step:
            self._validate()
        return stopped

    def _groups(self) -> Iterator[list[Any]]:
        """Yield the remaining batches of the current epoch in groups of one update each."""
        epoch = self._batches.epoch(self.progress.epoch, skip=self.progress.position)
        batches = prefetch(iter(epoch))
        while group := list(itertools.islice(batches, self._config.accumulate)):
            yield group

    def _step(self, group: list[Any]) -> None:
        num_tokens = sum(batch.num_target_tokens for batch in group)
        # An interrupt waits for the end of the step, so that a resumed run continues exactly.
        with self._interrupts.deferred():
            if self._compiler.begin_step(self.progress.step, self._seconds()):
                self._gradients.reset()
            self._updates.begin()
            self._processes.begin_step(self.progress.step)
            sums, num_tokens = self._processes.add_up(
                self._model, self._backward(group), num_tokens, seconds=self._seconds()
            )
            self._set_learning_rate()
            norm = self._processes.scale_gradients(
                self._model, count=sums[2], clip_norm=self._config.clip_norm
            )
            self._updates.step(self._meter.add(sums, norm, num_tokens=num_tokens))
            self.progress.step += 1
            self._ema.update(self.progress.step)
            self.progress.position += len(group)
            self.progress.tokens += num_tokens
            self._log_file.advance(self.progress.step)
            if self.progress.step % self._config.log_every == 0:
                self._log()

    def _backward(self, group: list[Any]) -> Tensor:
        """Compute the gradients of an update; return the sums of loss, NLL and token count, (3,).

        Losses are sums over examples, so a batch that does not fit into memory can be computed in
        parts if its class has a method `split`.
        """
        while True:
            # The gradients keep their memory, to which captured graphs write.
            self._optimizer.zero_grad(set_to_none=self._device.type != "cuda")
            parts = group
            if self._num_parts > 1:
                parts = [part for one in group for part in one.split(self._num_parts)]
            try:
                return torch.stack([self._gradients.add(part) for part in parts]).sum(0)
            except torch.OutOfMemoryError:
                self._processes.check_divisible(self.progress.step + 1)
                if not self._gradients.free():
                    is_divisible = all(hasattr(batch, "split") for batch in group)
                    if not is_divisible or len(parts) >= sum(len(batch.rows) for batch in group):
                        raise
                    self._split_further()
            except Exception as error:
                if not self._compiler.give_up(error):
                    raise
                self._gradients.reset()
            if self._device.type == "cuda":
                torch.cuda.empty_cache()

    def _split_further(self) -> None:
        """Compute later batches in twice as many parts."""
        self._num_parts *= 2
        logger.warning(
            "Step %s does not fit into memory. Batches are computed in %s parts from now on; "
            "a lower `data.batch.max_tokens` is faster.",
            f"{self.progress.step + 1:,}",
            self._num_parts,
        )

    def _choose_gradients(self) -> Gradients:
        # Checkpointed activations save the state of the random generator, which a graph cannot.
        if self._device.type == "cuda" and not self._is_eager:
            return CapturedGradients(self._loss, self._device, model=self._model)
        return Gradients(self._loss, self._device)

    def _reset_optimizer(self) -> None:
        config, model = self._config, self._model
        self._optimizer = build_optimizer(config.optimizer, model, layer_decay=config.layer_decay)

    def _start_processes(self) -> None:
        self._processes.start(self._model, self._optimizer)
        self._updates = build_updates(self._optimizer, self._model, self._device)

    def _set_learning_rate(self) -> None:
        factor = self._schedule.factor(self.progress.step + 1, self.progress.epoch)
        factor *= self.progress.rate_factor
        for group in self._optimizer.param_groups:
            group["lr"] = self._config.optimizer.learning_rate * factor * group["scale"]

    def _log(self) -> None:
        numbers, self._skipped = self._meter.read(), self._meter.skipped()
        self._meter.reset()
        rate = max(group["lr"] for group in self._optimizer.param_groups)
        if self._skipped.num < self._skipped.num_steps:
            self._write("train", {**numbers, "learning_rate": rate})
        if self._skipped.num and not self._skipped.is_repeated:
            logger.warning("%s.", self._skipped.describe(self.progress.step))

    def _return_to_checkpoint(self) -> None:
        """Resume from the last checkpoint, which was saved before the skipped steps."""
        found = self._skipped.describe(self.progress.step)
        num_returns = self.progress.num_returns
        if num_returns == MAX_RETURNS or not self._has_checkpoint:
            raise RegardError(f"{found}. {describe_remedies(self._config, self._run)}")
        with self._interrupts.deferred():
            self._saver.wait()
            self._processes.wait()  # until the first one, which alone writes, has written
            self._processes.finish(self._model)
            self._reset_optimizer()
            self.resume()
            self._start_processes()
            self._skipped = Skipped()
            self.progress.num_returns = num_returns + 1
            self._remove_later_steps()
        logger.warning(
            "%s. Training returns to step %s, with half the learning rate.",
            found,
            f"{self.progress.step:,}",
        )

    def _validate(self) -> None:
        self._ema.apply()
        with self._processes.whole(self._model):
            values = self._processes.from_first(lambda: asdict(self._evaluate()))
        result = Validation(**values)
        with self._interrupts.deferred():
            if result.replaces_metric(self.progress):
                self._schedule.restore({"best": None, "bad_validations": 0})
            self._schedule.observe(result.value)
            self.progress.bad_validations += 1
            self.progress.validated_step = self.progress.step
            self._record("valid", result)
            loss = result.metrics.get("loss", math.nan)
            report_overfitting(self.progress, loss, patience=self._config.patience)
            self._ema.remove()
            with self._processes.whole(self._model):
                if self._processes.is_first:
                    self._averages.keep(self._model, self.progress.step)
            self._try_save()

    def _evaluate(self) -> Validation:
        """Validate without changing the model, the generator states or the measured throughput."""
        rng = checkpoint.rng_states()
        self._model.eval()
        release_memory()  # Tensors of a search do not fit into freed blocks of training steps.
        try:
            with torch.no_grad(), force_eager(), self._meter.paused(), self._log_file.validating():
                return self._validation()
        finally:
            set_training(self._model)
            checkpoint.restore_rng(rng)
            release_memory()

    def _record(self, kind: str, result: Validation) -> None:
        is_best = result.is_best(self.progress)
        if is_best:
            self._save_weights()
        result.count(self.progress)
        named = {"metric": result.metric} if result.metric else {}
        row = {"value": result.value, **named, **result.metrics, "is_best": is_best}
        self._write(kind, row)

    def _try_average(self) -> None:
        is_averaged = self._processes.is_first and self._config.average_last
        paths = self._averages.undamaged() if is_averaged else []
        if len(paths) < 2:
            return
        current = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}
        checkpoint.put_weights(self._model, average_weights(paths), str(paths[0].parent))
        try:
            result = self._evaluate()
            with self._interrupts.deferred():
                self._record("average", result)
        finally:
            checkpoint.put_weights(self._model, current, "the model")

    def _try_save(self) -> None:
        """Save the state unless steps are skipped now: training may return to the one before."""
        if not (self._has_checkpoint and self._meter.skipped().in_a_row):
            self._save()

    def _save(self) -> None:
        self.progress.seconds = self._seconds()
        state = {
            "progress": asdict(self.progress),
            "meter": self._meter.state(),
            "schedule": self._schedule.state(),
        }
        with self._processes.whole(self._model, self._optimizer):
            snapshot = checkpoint.take_snapshot(
                self._model, self._optimizer, state=state, averages=self._ema.state()
            )
            seconds = self._processes.agreed(self.progress.seconds)
            self._saver.save(snapshot, step=self.progress.step, seconds=seconds)
        self._has_checkpoint = True

    def _save_weights(self) -> None:
        """Save the current weights as the best ones."""
        with self._processes.whole(self._model):
            if self._processes.is_first:
                checkpoint.save_weights(self._model, self._run / "model.safetensors")

    def _remove_later_steps(self) -> None:
        """Remove log rows and weights of later steps, left by an earlier run in this folder."""
        if not self._processes.is_first:
            return
        self._run.mkdir(parents=True, exist_ok=True)
        self._log_file.truncate(after=self.progress.step or -1)
        self._averages.remove(after=self.progress.step)
        if self.progress.step == 0 and not self._has_checkpoint:
            checkpoint.remove_training(self._run)

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def _write(self, kind: str, values: dict[str, Any]) -> None:
        self._log_file.record(kind, values, progress=self.progress, seconds=self._seconds())

"""`regard evaluate` and `regard score`: metrics of a test set, log-probabilities of targets."""

from typing import TYPE_CHECKING, Any

from regard.cli.arguments import split_columns, split_search_arguments
from regard.cli.options import (
    Beam,
    Columns,
    Device,
    Json,
    JsonLines,
    OnError,
    OutFile,
    Run,
    SearchSeed,
    TestData,
    TestDataAndOverrides,
)
from regard.cli.output import output_to, print_evaluation, print_json
from regard.core.errors import ConfigError
from regard.core.logging import logger

if TYPE_CHECKING:
    from regard.data.example import Example
    from regard.tasks.base import Task


def evaluate(
    run: Run,
    arguments: TestDataAndOverrides = None,
    columns: Columns = None,
    on_error: OnError = None,
    beam: Beam = None,
    as_json: Json = False,
    out: OutFile = None,
    seed: SearchSeed = None,
    device: Device = "auto",
) -> None:
    """Evaluate a run on a test set.

    Without DATA, the test set is the one that training held out and stored in the run folder.
    A built-in data set is evaluated on its test split.
    """
    from regard.runs.evaluate import evaluate_examples
    from regard.runs.folder import load
    from regard.runs.provenance import describe_provenance

    paths, overrides = split_search_arguments(arguments, max_paths=2, seed=seed)
    with output_to(out):
        task = load(run, device)
        examples = _read(task, run, paths, columns=columns, on_error=on_error)
        evaluation = evaluate_examples(task, examples, beams=beam, overrides=overrides)
        if as_json:
            print_json({**describe_provenance(task.device), **evaluation.to_dict()})
        else:
            print_evaluation(evaluation)


def score(
    run: Run,
    data: TestData = None,
    columns: Columns = None,
    on_error: OnError = None,
    as_json: JsonLines = False,
    out: OutFile = None,
    device: Device = "auto",
) -> None:
    """Print the log-probability of each target, one line per pair.

    Without DATA, the pairs are the test set of the run.
    """
    from regard.runs.evaluate import score_examples
    from regard.runs.folder import load

    paths, overrides = split_search_arguments(data, max_paths=2)
    if overrides:
        raise ConfigError(
            f"`regard score` does not search, so '{overrides[0]}' has no effect. Leave it out."
        )
    with output_to(out):
        task = load(run, device)
        for example, scored in score_examples(
            task, _read(task, run, paths, columns=columns, on_error=on_error)
        ):
            if as_json:
                print_json({"source": example.source, **scored.to_dict()}, indent=None)
            else:
                print(f"{scored.log_prob:.4f}")


def _read(
    task: "Task[Any]", run: str, paths: list[str], *, columns: str | None, on_error: str | None
) -> "list[Example]":
    """Read the named test data, or that of the run."""
    from regard.runs.evaluate import read_test_data
    from regard.runs.folder import read_test_set

    if paths:
        roles = split_columns(columns)
        return read_test_data(task, tuple(paths), columns=roles, on_error=on_error)
    for name, value in (("--columns", columns), ("--on-error", on_error)):
        if value is not None:
            raise ConfigError(f"`{name}` is for a file of pairs, but none is given. Name one.")
    examples = read_test_set(run)
    logger.info("Test set of the run: %s examples.", f"{len(examples):,}")
    return examples

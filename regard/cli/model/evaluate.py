"""`regard evaluate` and `regard score`: metrics of a test set, log-probabilities of targets."""

from regard.cli.arguments import split_columns
from regard.cli.options import Beam, Columns, Data, Device, Json, OnError, Run, SecondData
from regard.cli.output import print_evaluation, print_json


def evaluate(
    run: Run,
    data: Data,
    data2: SecondData = None,
    columns: Columns = None,
    on_error: OnError = None,
    beam: Beam = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Evaluate a run on a test set.

    A built-in data set is evaluated on its test split.
    """
    from regard.runs.evaluate import evaluate_data
    from regard.runs.folder import describe_provenance, load

    task = load(run, device)
    paths = (data,) if data2 is None else (data, data2)
    roles = None if columns is None else split_columns(columns)
    evaluation = evaluate_data(task, paths, columns=roles, on_error=on_error, beams=beam)
    if as_json:
        print_json({**describe_provenance(task.device), **evaluation.to_dict()})
    else:
        print_evaluation(evaluation)


def score(
    run: Run,
    data: Data,
    data2: SecondData = None,
    on_error: OnError = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Print the log-probability of each target, one line per pair."""
    from regard.runs.evaluate import score_data
    from regard.runs.folder import load

    paths = (data,) if data2 is None else (data, data2)
    for example, scored in score_data(load(run, device), paths, on_error=on_error):
        if as_json:
            print_json({"source": example.source, **scored.to_dict()}, indent=None)
        else:
            print(f"{scored.log_prob:.4f}")

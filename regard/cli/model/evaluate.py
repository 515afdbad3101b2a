"""`regard evaluate`: every score with its signature."""

from regard.cli.arguments import split_columns
from regard.cli.options import Beam, Columns, Data, Device, Json, Run, SecondData
from regard.cli.output import print_evaluation, print_json


def evaluate(
    run: Run,
    data: Data,
    data2: SecondData = None,
    columns: Columns = None,
    beam: Beam = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Answer a test set and measure the answers; of a named data set, its test part."""
    from regard.runs.evaluate import evaluate_data
    from regard.runs.folder import describe_making, load

    task = load(run, device)
    paths = (data,) if data2 is None else (data, data2)
    roles = None if columns is None else split_columns(columns)
    evaluation = evaluate_data(task, paths, columns=roles, beams=beam)
    if as_json:
        print_json({**describe_making(task.device), **evaluation.to_dict()})
    else:
        print_evaluation(evaluation)

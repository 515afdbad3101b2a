"""`regard score`: the log-probability of given targets."""

from regard.cli.options import Data, Device, Json, Run, SecondData
from regard.cli.output import print_json_line


def score(
    run: Run,
    data: Data,
    data2: SecondData = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Print the log-probability of each pair's target, one line a pair, order kept."""
    from regard.runs.evaluate import score_data
    from regard.runs.folder import load

    paths = (data,) if data2 is None else (data, data2)
    for example, scored in score_data(load(run, device), paths):
        if as_json:
            print_json_line({"source": example.source, **scored.to_dict()})
        else:
            print(f"{scored.log_prob:.4f}")

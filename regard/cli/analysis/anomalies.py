"""`regard anomalies`: what does not look like anything that was learned."""

from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, Json, OneRun, Plot
from regard.cli.output import print_json, print_results


def anomalies(
    run: OneRun,
    data: Annotated[str, Argument(help="Images or sentences; beside a second set, normal ones.")],
    odd: Annotated[str | None, Argument(help="Anomalies to tell from these.")] = None,
    false_alarms: Annotated[float, Option(help="Share of normal items taken for odd.")] = 0.05,
    out: Plot = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Tell odd items by how badly an autoencoder draws or writes them.

    The threshold is such that a share of the run's validation items lies beyond it. With one set:
    for each item its error and whether it is odd. With two: how well errors tell them apart.
    """
    from regard.core.errors import ConfigError
    from regard.plots.figure import check_path, save
    from regard.runs.folder import describe_provenance
    from regard.studies.anomalies import detect, flag
    from regard.studies.autoencoder import Subject

    if out is not None:
        check_path(out, "--out")
    subject = Subject(run, device)
    if odd is None:
        if out is not None:
            raise ConfigError("`--out` draws two sets beside each other. Give a second one.")
        for row in flag(subject, data, false_alarms=false_alarms):
            if as_json:
                print_json(row, indent=None)
            else:
                verdict = "odd" if row["is_odd"] else "normal"
                print(f"{row['error']:.6f}", verdict, row["source"], sep="\t")
        return
    found = detect(subject, data, odd, false_alarms=false_alarms)
    if as_json:
        print_json({**describe_provenance(subject.task.device), **found.to_dict()})
    else:
        for name, judge in found.judges.items():
            results = (judge.area, judge.found, judge.false_alarms)
            print_results(results, title=f"{name}, threshold {judge.threshold:.6f}")
        ahead = found.difference
        low, high = ahead.interval
        print(f"difference {ahead.value:+.4f} ({low:+.4f} to {high:+.4f}), p {ahead.p_value:.2g}")
    if out is not None:
        save(out, found.draw(), title=f"{data} and {odd}")
        if not as_json:
            print(out)

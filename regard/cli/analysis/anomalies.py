"""`regard anomalies`: what does not look like anything that was learned."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, OneRun


def anomalies(
    run: OneRun,
    data: Annotated[
        str,
        typer.Argument(
            help="What to look at: images or sentences; with a second argument, normal ones."
        ),
    ],
    odd: Annotated[
        str | None, typer.Argument(help="Items that are not like those; then both are told apart.")
    ] = None,
    false_alarms: Annotated[
        float, typer.Option(help="Share of normal items that may be taken for odd.")
    ] = 0.05,
    out: Annotated[Path | None, typer.Option(help="A picture: .svg, .png or .html.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    device: Device = "auto",
) -> None:
    """Tell odd items by how badly an autoencoder draws or writes them.

    The threshold is such that a share of the run's validation items lies beyond it. With one set:
    for each item its error and whether it is odd. With two: how well errors tell them apart.
    """
    from regard.core.errors import ConfigError
    from regard.plots import figure
    from regard.runs.folder import describe_making
    from regard.studies.anomalies import detect, find_threshold
    from regard.studies.autoencoder import Subject

    if out is not None:
        figure.check_path(out, "--out")
    subject = Subject(run, device)
    if odd is None:
        if out is not None:
            raise ConfigError("`--out` draws two sets beside each other. Give a second one.")
        threshold = find_threshold(subject, false_alarms)
        sources = subject.read(data)
        for source, error in zip(sources, subject.errors(sources).tolist(), strict=True):
            row = {"source": source, "error": error, "threshold": threshold}
            row["is_odd"] = error > threshold
            verdict = "odd" if row["is_odd"] else "normal"
            print(json.dumps(row) if as_json else f"{error:.6f}\t{verdict}\t{source}")
        return
    found = detect(subject, data, odd, false_alarms=false_alarms)
    if as_json:
        print(json.dumps({**describe_making(subject.task.device), **found.to_dict()}, indent=2))
    else:
        rival = f"PCA, {found.num_components} components"
        for name, judge in (("autoencoder", found.own), (rival, found.rival)):
            print(f"{name}, threshold {judge.threshold:.6f}:")
            for result in (judge.area, judge.found, judge.false_alarms):
                print(f"  {result}")
        ahead = found.difference
        low, high = ahead.interval
        print(f"difference {ahead.value:+.4f} ({low:+.4f} to {high:+.4f}), p {ahead.p_value:.2g}")
    if out is not None:
        figure.save(out, found.draw(), title=f"{data} and {odd}")
        if not as_json:
            print(out)

"""`regard anomalies`: detect anomalies by the reconstruction error of an autoencoder."""

from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, Json, OneRun, Plot
from regard.cli.output import print_json, print_results


def anomalies(
    run: OneRun,
    data: Annotated[
        str,
        Argument(metavar="DATA", help="Images or sentences; normal ones if ANOMALOUS is given."),
    ],
    anomalous: Annotated[
        str | None, Argument(metavar="[ANOMALOUS]", help="Anomalies to separate from DATA.")
    ] = None,
    false_alarms: Annotated[
        float, Option(help="Share of normal items above the threshold.")
    ] = 0.05,
    out: Plot = None,
    as_json: Json = False,
    device: Device = "auto",
) -> None:
    """Detect anomalies by their reconstruction error.

    The threshold is chosen so that a share of the validation items of the autoencoder exceeds it.
    With one set, print the error of each item and whether it is an anomaly. With two sets, print
    how well errors separate them.
    """
    from regard.core.errors import ConfigError
    from regard.plots.figure import check_path, save
    from regard.runs.provenance import describe_provenance
    from regard.studies.anomalies import detect_anomalies, flag_anomalies
    from regard.studies.autoencoder import AutoencoderRun

    if out is not None:
        check_path(out, "--out")
    autoencoder = AutoencoderRun(run, device)
    if anomalous is None:
        if out is not None:
            raise ConfigError("`--out` plots two sets. Give a second one.")
        for row in flag_anomalies(autoencoder, data, false_alarms=false_alarms):
            if as_json:
                print_json(row, indent=None)
            else:
                label = "anomaly" if row["is_anomaly"] else "normal"
                print(f"{row['error']:.6f}", label, row["source"], sep="\t")
        return
    result = detect_anomalies(autoencoder, data, anomalous, false_alarms=false_alarms)
    if as_json:
        print_json({**describe_provenance(autoencoder.task.device), **result.to_dict()})
    else:
        for name, detector in result.detectors.items():
            scores = (detector.roc_auc, detector.detection_rate, detector.false_alarm_rate)
            print_results(scores, title=f"{name}, threshold {detector.threshold:.6f}")
        diff = result.difference
        low, high = diff.interval
        print(f"difference {diff.value:+.4f} ({low:+.4f} to {high:+.4f}), p {diff.p_value:.2g}")
    if out is not None:
        save(out, result.plot(), title=f"{data} and {anomalous}")
        if not as_json:
            print(out)

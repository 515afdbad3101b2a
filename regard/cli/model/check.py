"""`regard check`: compare the files of a run with their checksums."""

from pathlib import Path

from regard.cli.options import OneRun


def check(run: OneRun) -> None:
    """Compare all files of a run folder with the checksums of the time when they were written."""
    from regard.runs.folder import check_folder

    paths = check_folder(Path(run))
    size = sum(path.stat().st_size for path in paths) / 1e6
    print(f"{len(paths)} files ({size:,.1f} MB) are as they were written.")

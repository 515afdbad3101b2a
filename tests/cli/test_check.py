import re

from regard.runs.folder import WEIGHTS


def test_unchanged_run_is_confirmed(regard, checked_folder):
    result = regard("check", checked_folder)
    assert (result.code, result.err) == (0, "")
    assert re.fullmatch(r"1\d files \(0\.\d MB\) are as they were written\.\n", result.out)


def test_damaged_run_is_refused(refused, checked_folder):
    path = checked_folder / "resume" / WEIGHTS
    path.write_bytes(path.read_bytes()[:-4] + bytes(4))
    message = refused("check", checked_folder)
    assert message.startswith(f"{checked_folder} is damaged. {path.parent}: {WEIGHTS} differs from")


def test_folder_that_is_no_run_is_refused(refused, tmp_path):
    assert refused("check", tmp_path / "absent").startswith(
        f"{tmp_path / 'absent'} is not a folder."
    )
    assert refused("check", tmp_path).startswith(f"{tmp_path / 'config.json'} is missing.")

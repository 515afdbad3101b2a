import json

from regard.runs.folder import METRICS, REPORT


def test_report_is_written_again(regard, tiny_folder):
    (tiny_folder / REPORT).unlink(missing_ok=True)
    result = regard("report", tiny_folder, "--device", "cpu")
    assert (result.code, result.lines) == (0, [f"Report: {tiny_folder / REPORT}"])
    scores = json.loads((tiny_folder / METRICS).read_text())["test"]["scores"]
    assert scores["bleu"]["signature"] in (tiny_folder / REPORT).read_text(encoding="utf-8")


def test_report_is_written_to_another_file(regard, tiny_folder, tmp_path):
    page = tmp_path / "page.html"
    assert regard("report", tiny_folder, "--out", page).lines == [f"Report: {page}"]
    assert page.exists()


def test_training_prints_the_path_of_the_report(
    regard, pairs, tiny_settings, with_reports, tmp_path
):
    arguments = ("--recipe", "bahdanau2015-laptop", "--out", tmp_path / "run", "--device", "cpu")
    result = regard("train", pairs, *arguments, *tiny_settings, "train.max_steps=1")
    assert result.lines[-1] == f"Report: {tmp_path / 'run' / REPORT}"


def test_run_that_is_not_finished_is_refused(refused, tiny_folder):
    (tiny_folder / METRICS).unlink()
    assert "--resume" in refused("report", tiny_folder)


def test_other_formats_are_refused(refused, tiny_folder):
    assert ".html" in refused("report", tiny_folder, "--out", "page.pdf")

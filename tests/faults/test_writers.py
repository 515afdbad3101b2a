"""Trainings into one folder at the same time: one of them trains, the others are refused."""

import os

import pytest

from regard.runs.folder import check_folder
from regard.runs.train import train
from tests.faults.harness import FINISHED, REFUSED, start_child, wait_for


@pytest.mark.parametrize("num_rounds", [2, pytest.param(20, marks=pytest.mark.faults)])
def test_one_of_several_trainings_into_one_folder_wins(reverse_files, tmp_path, num_rounds):
    def work(out):
        train(
            reverse_files.request(out, f"seed={os.getpid()}", "train.max_steps=4", is_forced=True)
        )

    for number in range(num_rounds):
        out, logs = tmp_path / f"{number}", [tmp_path / f"{number}-{i}.log" for i in range(3)]
        children = [start_child(work, out, log=log) for log in logs]
        codes, texts = [wait_for(child) for child in children], [log.read_text() for log in logs]
        # One that starts after another one's end trains too.
        assert set(codes) <= {FINISHED, REFUSED} and FINISHED in codes, texts
        for code, text in zip(codes, texts, strict=True):
            assert (code == REFUSED) == ("is in use by another training (process" in text)
        check_folder(out)

from regard.training.loggers.logger import Logger, scalars
from regard.training.plan import Plan
from tests.training_bench import SHORT, Bench


class Recorder(Logger):
    def __init__(self):
        self.rows, self.plans, self.num_closed = [], [], 0

    def start(self, plan):
        self.plans.append(plan)

    def write(self, row):
        self.rows.append(row)

    def close(self):
        self.num_closed += 1


def test_every_logger_gets_the_rows_of_the_training_log(tmp_path):
    loggers = [Recorder(), Recorder()]
    bench = Bench(tmp_path, SHORT, loggers=loggers)
    bench.run()
    written = [row for kind in ("train", "valid", "stop") for row in bench.rows(kind)]
    for logger in loggers:
        assert sorted(logger.rows, key=str) == sorted(written, key=str)
        assert logger.num_closed == 1


def test_resumed_run_starts_loggers_at_its_step(tmp_path):
    Bench(tmp_path, SHORT).run()
    logger = Recorder()
    bench = Bench(tmp_path, SHORT, loggers=[logger])
    bench.trainer.resume()
    bench.run()
    assert [plan.step for plan in logger.plans] == [10]


def test_base_class_ignores_all_events():
    logger = Logger()
    logger.start(Plan())
    logger.advance(1)
    with logger.validating():
        logger.write({"kind": "train", "step": 1})
    logger.close()


def test_scalars_are_the_numbers_of_a_row_by_kind():
    row = {
        "kind": "valid",
        "step": 3,
        "epoch": 1,
        "seconds": 2.5,
        "metric": "bleu",
        "bleu": 20,
        "loss": 1.5,
        "is_best": True,
    }
    assert scalars(row) == {"valid/bleu": 20.0, "valid/loss": 1.5}

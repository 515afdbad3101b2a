from regard.data.datasets.synthetic.toys import reverse
from regard.studies.reproduce.transformers import positions
from regard.studies.reproduce.transformers.permutation import KINDS


def test_every_kind_trains_in_encoder_and_decoder(monkeypatch):
    monkeypatch.setattr(positions, "SETTINGS", ("train.max_steps=1", "train.log_every=1"))
    pairs = reverse(20, limits=(3, 4))
    for kind in KINDS.values():
        training = positions.train_with(kind, pairs, seed=1)
        model = training.task.recipe.model
        assert (model.encoder.positions, model.decoder.positions) == (kind, kind)
        assert 0 <= positions.word_accuracy(training, pairs) <= 100
        assert [*positions.by_length(training, {3: pairs})] == [3]

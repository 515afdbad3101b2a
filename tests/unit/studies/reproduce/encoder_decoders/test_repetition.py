from regard.studies.reproduce.encoder_decoders.repetition import NUM_MODELS, average, model_seeds


def test_experiments_of_different_seeds_have_different_models():
    seeds = [number for seed in range(5) for number in model_seeds(seed)]
    assert len({*seeds}) == len(seeds) == 5 * NUM_MODELS


def test_each_measure_is_averaged():
    assert average([{"a": 10.0, "b": 4.0}, {"a": 20.0, "b": 5.0}]) == {"a": 15.0, "b": 4.5}

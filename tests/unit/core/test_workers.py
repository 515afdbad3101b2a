from regard.core.workers import map_chunks


def test_results_are_in_the_order_of_the_chunks():
    assert [*map_chunks(abs, iter([-3, 2, -1]), num_workers=1)] == [3, 2, 1]
    assert [*map_chunks(abs, iter([-3, 2, -1]), num_workers=2)] == [3, 2, 1]


def test_few_chunks_are_in_memory_at_a_time():
    taken = []

    def chunks():
        for number in range(12):
            taken.append(number)
            yield number

    for result in map_chunks(abs, chunks(), num_workers=2):
        assert len(taken) <= result + 4

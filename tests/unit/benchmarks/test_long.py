from benchmarks.results.long import write


def point(length, seconds, peak):
    cost = {"seconds": seconds, "peak_bytes": peak * 2**20, "flops": 10**10}
    return {"length": length, "train": cost, "search": cost}


def test_page_compares_the_roads_at_the_reference_length(tmp_path):
    costs = {
        "transformer": (4.0, 2048),
        "window": (2.0, 512),
        "window, pooled memory": (1.0, 256),
    }
    value = {
        "command": "python x.py",
        "hardware": "a machine",
        "torch": "2",
        "commit": "abc",
        "sources": 4,
        "target": 60,
        "beams": 4,
        "lengths": [600, 1200],
        "flops_per_second": 10**10,
        "models": {
            name: {
                "recipe": "r",
                "points": [point(600, seconds / 2, peak // 2), point(1200, seconds, peak)],
            }
            for name, (seconds, peak) in costs.items()
        },
    }
    page = write(value, tmp_path)
    assert (
        "every model trains and searches in at most 2.0 GiB. A window makes a step of training "
        "2.0 times as fast and takes 4.0 times less memory. A pooled memory besides makes the "
        "search 2.00 times as fast and training 2.00 times." in page
    )
    assert "| 1,200 | 4.00 | 2.00 | 1.00 |" in page
    assert "| window | 10 | 1.00 | 2.00 | 2.0 |" in page
    assert (tmp_path / "long.svg").exists()

import re

import numpy as np
import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.catalog import find_data
from regard.data.datasets.synthetic.moving import (
    DIRECTIONS,
    EVENTS,
    SPEEDS,
    find_motion,
    render_motion,
    sample_motion,
)
from regard.data.datasets.synthetic.scenes.objects import COLOURS

MOTIONS = [sample_motion(2, number) for number in range(300)]
TIMES = np.linspace(0, 1, 11).tolist()


def of_event(event):
    return [found for found in MOTIONS if found.event == event]


def way(found, first, last):
    """How far the mover comes along its direction between two times."""
    across, down = DIRECTIONS[found.direction]
    begin, end = (found.at(time).objects[0] for time in (first, last))
    return across * (end.x - begin.x) + down * (end.y - begin.y)


def gap(found, time):
    one, other = found.at(time).objects
    return max(abs(one.x - other.x), abs(one.y - other.y)) - one.radius - other.radius


def test_a_motion_hangs_on_seed_and_number():
    assert sample_motion(2, 7) == sample_motion(2, 7) == find_motion("moving/2/7")
    assert sample_motion(2, 7) != sample_motion(3, 7)


def test_everything_happens():
    for name, known in (("event", EVENTS), ("direction", DIRECTIONS), ("speed", SPEEDS)):
        assert {getattr(found, name) for found in MOTIONS} == set(known)


def test_things_stay_on_the_canvas():
    for found in MOTIONS:
        for obj in (obj for time in TIMES for obj in found.at(time).objects):
            assert min(obj.x, obj.y) - obj.radius > -1e-9
            assert max(obj.x, obj.y) + obj.radius < 1 + 1e-9


def test_the_first_move_is_in_the_direction_that_is_told():
    for found in MOTIONS:
        assert way(found, 0.0, 0.3) == pytest.approx(0.3 * found.distance)


def test_what_bounces_comes_back_from_the_edge():
    for found in of_event("bounce"):
        assert way(found, found.turn, 1.0) == pytest.approx((found.turn - 1) * found.distance)
        obj = found.at(found.turn).objects[0]
        edges = (obj.x, 1 - obj.x, obj.y, 1 - obj.y)
        assert min(abs(edge - obj.radius) for edge in edges) < 1e-9


def test_what_is_hit_moves_on():
    for found in of_event("hit"):
        assert gap(found, 0.0) > 0.05
        assert gap(found, found.turn) == pytest.approx(0.0, abs=1e-9)
        before, after = found.at(found.turn).objects[1], found.at(1.0).objects[1]
        moved = abs(after.x - before.x) + abs(after.y - before.y)
        assert moved == pytest.approx((1 - found.turn) * found.distance)
        assert way(found, found.turn, 1.0) == 0.0


def test_what_is_passed_is_never_touched():
    for found in of_event("pass"):
        assert min(gap(found, time) for time in TIMES) > 0
        assert len({found.at(time).objects[1] for time in TIMES}) == 1


def test_captions_tell_what_happens():
    one = r"an? (\w+) \w+ moves (slowly|quickly) (left|right|up|down)"
    ends = {
        "alone": "",
        "bounce": " and bounces off the edge",
        "hit": r" and hits an? (\w+) \w+",
        "pass": r" past an? (\w+) \w+",
    }
    for found in MOTIONS:
        colour, speed, direction, *other = re.fullmatch(
            one + ends[found.event], found.caption
        ).groups()
        assert (colour, speed, direction) == (found.mover.colour, found.speed, found.direction)
        assert {colour, *other} <= set(COLOURS)
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", found.caption)


def test_frames_show_the_mover_where_it_is():
    found = of_event("alone")[0]
    frames = render_motion(found, num_frames=5, size=64)
    assert frames.shape == (5, 64, 64, 3)
    for frame, time in zip(frames, np.linspace(0, 1, 5).tolist(), strict=True):
        obj = found.at(time).objects[0]
        colour = np.array(COLOURS[obj.colour])
        rows, columns = np.nonzero(abs(frame - colour.astype(int)).sum(-1) < 10)
        assert columns.mean() == pytest.approx(64 * obj.x, abs=2)
        assert rows.mean() == pytest.approx(64 * obj.y, abs=2)


def test_parts_share_no_caption():
    splits = find_data("moving:200")
    captions = [{e.target for e in side} for side in (splits.train, splits.valid, splits.test)]
    assert not captions[0] & (captions[1] | captions[2]) and not captions[1] & captions[2]
    example = splits.train[5]
    assert example.target == find_motion(example.source).caption


def test_directions_are_labels():
    splits = find_data("moving:directions,200")
    assert {example.target for example in splits.train} == set(DIRECTIONS)
    assert all(find_motion(e.source).direction == e.target for e in splits.test)


@pytest.mark.parametrize("reference", ["moving/0", "moving/0/x", "moved/0/1", "moving/-1/2"])
def test_other_references_are_refused(reference):
    with pytest.raises(DataError, match="must have the form 'moving/SEED/NUMBER'"):
        find_motion(reference)


def test_a_negative_number_is_refused():
    with pytest.raises(ConfigError, match="`number`"):
        sample_motion(0, -1)


def test_an_unknown_kind_is_refused():
    with pytest.raises(DataError, match="The argument of 'moving:' must be one of 'directions'"):
        find_data("moving:speeds")

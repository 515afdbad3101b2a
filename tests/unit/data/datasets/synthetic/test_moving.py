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
    return [motion for motion in MOTIONS if motion.event == event]


def displacement(motion, first, last):
    """Return how far the mover moves along its direction between two times."""
    across, down = DIRECTIONS[motion.direction]
    start, end = (motion.at(time).objects[0] for time in (first, last))
    return across * (end.x - start.x) + down * (end.y - start.y)


def distance(motion, time):
    """Return the distance between the edges of both objects."""
    one, other = motion.at(time).objects
    return max(abs(one.x - other.x), abs(one.y - other.y)) - one.radius - other.radius


def test_motion_is_determined_by_seed_and_number():
    assert sample_motion(2, 7) == sample_motion(2, 7) == find_motion("moving/2/7")
    assert sample_motion(2, 7) != sample_motion(3, 7)


def test_all_events_directions_and_speeds_occur():
    for name, values in (("event", EVENTS), ("direction", DIRECTIONS), ("speed", SPEEDS)):
        assert {getattr(motion, name) for motion in MOTIONS} == set(values)


def test_objects_stay_inside_the_frame():
    for motion in MOTIONS:
        for obj in (obj for time in TIMES for obj in motion.at(time).objects):
            assert min(obj.x, obj.y) - obj.radius > -1e-9
            assert max(obj.x, obj.y) + obj.radius < 1 + 1e-9


def test_object_starts_in_its_direction():
    for motion in MOTIONS:
        assert displacement(motion, 0.0, 0.3) == pytest.approx(0.3 * motion.distance)


def test_bouncing_object_returns_from_the_edge():
    for motion in of_event("bounce"):
        assert displacement(motion, motion.turn, 1.0) == pytest.approx(
            (motion.turn - 1) * motion.distance
        )
        obj = motion.at(motion.turn).objects[0]
        edges = (obj.x, 1 - obj.x, obj.y, 1 - obj.y)
        assert min(abs(edge - obj.radius) for edge in edges) < 1e-9


def test_object_that_is_hit_moves_and_the_mover_stops():
    for motion in of_event("hit"):
        assert distance(motion, 0.0) > 0.05
        assert distance(motion, motion.turn) == pytest.approx(0.0, abs=1e-9)
        before, after = motion.at(motion.turn).objects[1], motion.at(1.0).objects[1]
        moved = abs(after.x - before.x) + abs(after.y - before.y)
        assert moved == pytest.approx((1 - motion.turn) * motion.distance)
        assert displacement(motion, motion.turn, 1.0) == 0.0


def test_object_that_is_passed_is_never_touched():
    for motion in of_event("pass"):
        assert min(distance(motion, time) for time in TIMES) > 0
        assert len({motion.at(time).objects[1] for time in TIMES}) == 1


def test_captions_describe_the_motion():
    start = r"an? (\w+) \w+ moves (slowly|quickly) (left|right|up|down)"
    ends = {
        "alone": "",
        "bounce": " and bounces off the edge",
        "hit": r" and hits an? (\w+) \w+",
        "pass": r" past an? (\w+) \w+",
    }
    for motion in MOTIONS:
        colour, speed, direction, *other = re.fullmatch(
            start + ends[motion.event], motion.caption
        ).groups()
        assert (colour, speed, direction) == (motion.mover.colour, motion.speed, motion.direction)
        assert {colour, *other} <= set(COLOURS)
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", motion.caption)


def test_frames_show_the_object_at_its_position():
    motion = of_event("alone")[0]
    frames = render_motion(motion, num_frames=5, size=64)
    assert frames.shape == (5, 64, 64, 3)
    for frame, time in zip(frames, np.linspace(0, 1, 5).tolist(), strict=True):
        obj = motion.at(time).objects[0]
        colour = np.array(COLOURS[obj.colour])
        rows, columns = np.nonzero(abs(frame - colour.astype(int)).sum(-1) < 10)
        assert columns.mean() == pytest.approx(64 * obj.x, abs=2)
        assert rows.mean() == pytest.approx(64 * obj.y, abs=2)


def test_splits_share_no_caption():
    splits = find_data("moving:200")
    captions = [{e.target for e in part} for part in (splits.train, splits.valid, splits.test)]
    assert not captions[0] & (captions[1] | captions[2]) and not captions[1] & captions[2]
    example = splits.train[5]
    assert example.target == find_motion(example.source).caption


def test_directions_are_labels():
    splits = find_data("moving:directions,200")
    assert {example.target for example in splits.train} == set(DIRECTIONS)
    assert all(find_motion(e.source).direction == e.target for e in splits.test)


@pytest.mark.parametrize("reference", ["moving/0", "moving/0/x", "moved/0/1", "moving/-1/2"])
def test_invalid_references_raise(reference):
    with pytest.raises(DataError, match="must have the form 'moving/SEED/NUMBER'"):
        find_motion(reference)


def test_negative_number_raises():
    with pytest.raises(ConfigError, match="`number`"):
        sample_motion(0, -1)


def test_unknown_kind_raises():
    with pytest.raises(DataError, match="The argument of 'moving:' must be one of 'directions'"):
        find_data("moving:speeds")

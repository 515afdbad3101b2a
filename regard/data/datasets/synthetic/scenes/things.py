"""What a scene is made of, drawn at random: things in groups, none over another, on a background.

All lengths are shares of the canvas, from its upper left corner on, so that a scene can be drawn
in any size.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random

from regard.core.config import at_least

SHAPES = ("circle", "square", "triangle", "star", "cross")
COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (214, 39, 40),
    "green": (42, 160, 60),
    "blue": (40, 98, 222),
    "yellow": (246, 210, 24),
    "purple": (148, 62, 200),
    "orange": (247, 132, 28),
}
LOOKS = [(shape, colour) for shape in SHAPES for colour in COLOURS]
"""What things can look like; no two groups of a scene look alike."""
RADII: dict[str, tuple[float, float]] = {"small": (0.085, 0.105), "large": (0.165, 0.195)}
"""The least and the greatest radius of what is called small, and of what is called large."""

COUNTS = {1: ((1,), (1,), (2,), (3,)), 2: ((1, 1), (1, 1), (1, 2), (2, 1), (1, 3), (2, 2))}
COUNTS[3] = ((1, 1, 1), (1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2))
"""How many things each group may have, by the number of groups; more than once = more often."""

GAP = 0.03
"""Least distance between the boxes of two things, and from the edge."""

CLARITY = 1.35
"""So much farther apart must two groups be in one direction than in the other to be called so."""

ORDER_GAP = 0.06
"""Least distance from left to right between groups that are named from left to right."""

Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge."""


@dataclass(frozen=True)
class Thing:
    """One coloured shape."""

    shape: str
    """A name of `SHAPES`."""
    colour: str
    """A name of `COLOURS`."""
    size: str
    """A name of `RADII`."""
    x: float
    """Its middle, from the left."""
    y: float
    """Its middle, from above."""
    radius: float
    """From its middle to its farthest point."""
    angle: float = 0.0
    """How far it is turned, in radians."""

    @cached_property
    def outline(self) -> tuple[tuple[float, float], ...]:
        """The corners in their order; none for a circle."""
        sine, cosine = math.sin(self.angle), math.cos(self.angle)
        return tuple(
            (
                self.x + self.radius * (x * cosine - y * sine),
                self.y + self.radius * (x * sine + y * cosine),
            )
            for x, y in _CORNERS[self.shape]
        )

    @cached_property
    def box(self) -> Box:
        """The smallest box around it."""
        if not self.outline:
            x, y, radius = self.x, self.y, self.radius
            return x - radius, y - radius, x + radius, y + radius
        columns, rows = zip(*self.outline, strict=True)
        return min(columns), min(rows), max(columns), max(rows)


Group = tuple[Thing, ...]
"""Things that look alike."""


@dataclass(frozen=True)
class Background:
    """What lies behind the things."""

    level: int
    """How bright it is, 0 to 255."""
    noise: int
    """How far a pixel may be from that; 0 = plain."""


@dataclass(frozen=True)
class Scene:
    """Groups of things, in the order in which they are named."""

    seed: int
    number: int
    groups: tuple[Group, ...]
    background: Background

    @cached_property
    def things(self) -> tuple[Thing, ...]:
        """All things, group by group."""
        return tuple(thing for group in self.groups for thing in group)

    @property
    def relations(self) -> tuple[str, ...]:
        """Where each group stands as seen from the next, for all but the last."""
        return tuple(relation(one, other) or "" for one, other in pairwise(self.groups))


def scene(seed: int, number: int) -> Scene:
    """Return a scene, which depends on its seed and its number alone."""
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"scene {seed} {number}")
    while True:
        # A lot that fits nowhere is drawn anew, so that crowded scenes come less often.
        (num_groups,) = random.choices((1, 2, 3), (2, 4, 4))
        looks = random.sample(LOOKS, num_groups)
        kinds = [(shape, colour, random.choice(list(RADII))) for shape, colour in looks]
        counts = random.choice(COUNTS[num_groups])
        for _ in range(30):
            groups = _place(random, kinds, counts)
            if groups and all(map(relation, groups, groups[1:])):
                return Scene(seed, number, groups, _background(random))


def shape_scene(seed: int, number: int) -> Scene:
    """Return a single thing of any size, turned anyhow, anywhere: for telling shapes apart."""
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"shape {seed} {number}")
    radius = random.uniform(RADII["small"][0], 0.32)
    size = "small" if radius < 0.2 else "large"
    x, y = (random.uniform(radius + GAP, 1 - radius - GAP) for _ in range(2))
    angle = random.uniform(0, 2 * math.pi)
    shape, colour = random.choice(SHAPES), random.choice(list(COLOURS))
    thing = Thing(shape, colour, size, x, y, radius, angle)
    return Scene(seed, number, ((thing,),), _background(random))


def relation(one: Group, other: Group) -> str | None:
    """Say where a group stands as seen from another; None where that is not clear.

    It is clear where all of the one are on that side of all of the other, and the middles of both
    lie clearly farther apart in that direction than in the other.
    """
    (x, y), (other_x, other_y) = middle(one), middle(other)
    across, down = other_x - x, other_y - y
    if abs(across) > CLARITY * abs(down):
        is_before, before, after = across > 0, "left of", "right of"
        firsts, seconds = [thing.x for thing in one], [thing.x for thing in other]
    elif abs(down) > CLARITY * abs(across):
        is_before, before, after = down > 0, "above", "below"
        firsts, seconds = [thing.y for thing in one], [thing.y for thing in other]
    else:
        return None
    is_apart = max(firsts) < min(seconds) if is_before else max(seconds) < min(firsts)
    return (before if is_before else after) if is_apart else None


def middle(group: Group) -> tuple[float, float]:
    """Return the mean of the middles of some things."""
    num = len(group)
    return sum(thing.x for thing in group) / num, sum(thing.y for thing in group) / num


def _place(
    random: Random, kinds: list[tuple[str, str, str]], counts: tuple[int, ...]
) -> tuple[Group, ...] | None:
    """Put things anywhere, one after another; None where there is no room or no clear order."""
    placed: list[Thing] = []
    groups: list[Group] = []
    for kind, count in zip(kinds, counts, strict=True):
        for _ in range(count):
            thing = _find_room(random, kind, placed)
            if thing is None:
                return None
            placed.append(thing)
        groups.append(tuple(placed[-count:]))
    # Large before small, as it catches the eye, and then from left to right.
    groups.sort(key=lambda group: (group[0].size != "large", middle(group)[0]))
    for one, other in pairwise(groups):
        is_alike = one[0].size == other[0].size
        if is_alike and middle(other)[0] - middle(one)[0] < ORDER_GAP:
            return None
    return tuple(groups)


def _find_room(random: Random, kind: tuple[str, str, str], placed: list[Thing]) -> Thing | None:
    shape, colour, size = kind
    radius = random.uniform(*RADII[size])
    low, high = radius + GAP, 1 - radius - GAP
    for _ in range(10):
        x, y = random.uniform(low, high), random.uniform(low, high)
        reach = radius + GAP
        if all(max(abs(x - t.x), abs(y - t.y)) > reach + t.radius for t in placed):
            return Thing(shape, colour, size, x, y, radius)
    return None


def _background(random: Random) -> Background:
    level = random.choice((random.randint(20, 60), random.randint(205, 245)))
    return Background(level, random.choice((0, random.randint(12, 40))))


def _star() -> tuple[tuple[float, float], ...]:
    """Five points; the inner corners of the regular star."""
    inner = math.sin(math.pi / 10) / math.sin(3 * math.pi / 10)
    turns = [(1.0 if corner % 2 == 0 else inner, corner * math.pi / 5) for corner in range(10)]
    return tuple((far * math.sin(turn), -far * math.cos(turn)) for far, turn in turns)


_HALF = math.sqrt(0.5)
_ARM = 0.3
_REACH = math.sqrt(1 - _ARM**2)
_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "circle": (),
    "square": ((-_HALF, -_HALF), (_HALF, -_HALF), (_HALF, _HALF), (-_HALF, _HALF)),
    "triangle": ((0, -1), (math.cos(math.pi / 6), 0.5), (-math.cos(math.pi / 6), 0.5)),
    "star": _star(),
    "cross": (
        *((-_ARM, -_REACH), (_ARM, -_REACH), (_ARM, -_ARM)),
        *((_REACH, -_ARM), (_REACH, _ARM), (_ARM, _ARM)),
        *((_ARM, _REACH), (-_ARM, _REACH), (-_ARM, _ARM)),
        *((-_REACH, _ARM), (-_REACH, -_ARM), (-_ARM, -_ARM)),
    ),
}
"""The corners of a shape of radius 1 around 0, downwards positive."""

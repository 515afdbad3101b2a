"""Random scenes: groups of coloured shapes that do not overlap, on a background.

All lengths are fractions of the image size, from the upper left corner, so that a scene can be
rendered in any size.
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
APPEARANCES = [(shape, colour) for shape in SHAPES for colour in COLOURS]
"""Shape and colour of a group; no two groups of a scene share both."""
RADII: dict[str, tuple[float, float]] = {"small": (0.085, 0.105), "large": (0.165, 0.195)}
"""Minimum and maximum radius by size."""

COUNTS = {1: ((1,), (1,), (2,), (3,)), 2: ((1, 1), (1, 1), (1, 2), (2, 1), (1, 3), (2, 2))}
COUNTS[3] = ((1, 1, 1), (1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2))
"""Numbers of objects per group, by the number of groups; repeated entries are more frequent."""

MARGIN = 0.03
"""Minimum distance between the boxes of two objects, and from the edge."""

DIRECTION_RATIO = 1.35
"""Minimum ratio of the distances in both directions for a spatial relation between two groups."""

ORDER_MARGIN = 0.06
"""Minimum horizontal distance between groups that are named from left to right."""

PAIR_GRID = 3
"""Number of rows and of columns of the grid of `sample_pair`."""
PAIR_RADII = {"large": 0.15, "small": 0.09}
"""Radii of the two objects of `sample_pair`, in the order in which captions name them."""

Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge of a bounding box."""


@dataclass(frozen=True)
class SceneObject:
    """A coloured shape."""

    shape: str
    """Entry of `SHAPES`."""
    colour: str
    """Key of `COLOURS`."""
    size: str
    """Key of `RADII`."""
    x: float
    """Horizontal coordinate of the centre."""
    y: float
    """Vertical coordinate of the centre, downwards."""
    radius: float
    """Distance from the centre to the farthest point."""
    angle: float = 0.0
    """Rotation in radians."""

    @cached_property
    def outline(self) -> tuple[tuple[float, float], ...]:
        """Corners in order; empty for a circle."""
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
        """Bounding box."""
        if not self.outline:
            x, y, radius = self.x, self.y, self.radius
            return x - radius, y - radius, x + radius, y + radius
        columns, rows = zip(*self.outline, strict=True)
        return min(columns), min(rows), max(columns), max(rows)


Group = tuple[SceneObject, ...]
"""Objects of the same shape, colour and size."""


@dataclass(frozen=True)
class Background:
    """Background of a scene."""

    level: int
    """Grey level, 0 to 255."""
    noise: int
    """Maximum deviation of a pixel from the level; 0 = uniform."""


@dataclass(frozen=True)
class Scene:
    """Groups of objects, in the order in which captions name them."""

    seed: int
    number: int
    groups: tuple[Group, ...]
    background: Background

    @cached_property
    def objects(self) -> tuple[SceneObject, ...]:
        """Objects of all groups."""
        return tuple(obj for group in self.groups for obj in group)

    @property
    def relations(self) -> tuple[str, ...]:
        """Spatial relation of each group, except the last, to the next."""
        return tuple(relation(group, other) or "" for group, other in pairwise(self.groups))


def sample_scene(seed: int, number: int) -> Scene:
    """Return a random scene, determined by its seed and number."""
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"scene {seed} {number}")
    while True:
        # Groups that do not fit are sampled again, so crowded scenes are less frequent.
        (num_groups,) = random.choices((1, 2, 3), (2, 4, 4))
        appearances = random.sample(APPEARANCES, num_groups)
        kinds = [(shape, colour, random.choice(list(RADII))) for shape, colour in appearances]
        counts = random.choice(COUNTS[num_groups])
        for _ in range(30):
            groups = _arrange(random, kinds, counts)
            if groups and all(map(relation, groups, groups[1:])):
                return Scene(seed, number, groups, _background(random))


def sample_pair(seed: int, number: int) -> Scene:
    """Return a scene of a large and a small object in two cells of a row or column of a grid.

    The grid has `PAIR_GRID` rows and columns, and a plain background.
    """
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"pair {seed} {number}")
    line = random.randrange(PAIR_GRID)
    cells = [(line, cell) for cell in random.sample(range(PAIR_GRID), 2)]
    if random.random() < 0.5:
        cells = [(column, row) for row, column in cells]
    groups = []
    appearances = random.sample(APPEARANCES, 2)
    for (row, column), (shape, colour), size in zip(cells, appearances, PAIR_RADII, strict=True):
        x, y = ((index + 0.5) / PAIR_GRID + random.uniform(-0.02, 0.02) for index in (column, row))
        groups.append((SceneObject(shape, colour, size, x, y, PAIR_RADII[size]),))
    return Scene(seed, number, tuple(groups), Background(_level(random), 0))


def sample_shape(seed: int, number: int) -> Scene:
    """Return a scene of a single shape of random size, rotation and position."""
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"shape {seed} {number}")
    radius = random.uniform(RADII["small"][0], 0.32)
    size = "small" if radius < 0.2 else "large"
    x, y = (random.uniform(radius + MARGIN, 1 - radius - MARGIN) for _ in range(2))
    angle = random.uniform(0, 2 * math.pi)
    shape, colour = random.choice(SHAPES), random.choice(list(COLOURS))
    obj = SceneObject(shape, colour, size, x, y, radius, angle)
    return Scene(seed, number, ((obj,),), _background(random))


def relation(group: Group, other: Group) -> str | None:
    """Return the spatial relation of a group to another, or None if it is ambiguous.

    Every object of the group must be on that side of every object of the other, and the distance
    of the centres in that direction must exceed the other distance by `DIRECTION_RATIO`.
    """
    (x, y), (other_x, other_y) = centre(group), centre(other)
    across, down = other_x - x, other_y - y
    if abs(across) > DIRECTION_RATIO * abs(down):
        is_before, before, after = across > 0, "left of", "right of"
        firsts, seconds = [obj.x for obj in group], [obj.x for obj in other]
    elif abs(down) > DIRECTION_RATIO * abs(across):
        is_before, before, after = down > 0, "above", "below"
        firsts, seconds = [obj.y for obj in group], [obj.y for obj in other]
    else:
        return None
    is_apart = max(firsts) < min(seconds) if is_before else max(seconds) < min(firsts)
    return (before if is_before else after) if is_apart else None


def centre(group: Group) -> tuple[float, float]:
    """Return the mean of the centres of the objects of a group."""
    num = len(group)
    return sum(obj.x for obj in group) / num, sum(obj.y for obj in group) / num


def _arrange(
    random: Random, kinds: list[tuple[str, str, str]], counts: tuple[int, ...]
) -> tuple[Group, ...] | None:
    """Position the objects at random; None if they do not fit or their order is ambiguous."""
    placed: list[SceneObject] = []
    groups: list[Group] = []
    for kind, count in zip(kinds, counts, strict=True):
        for _ in range(count):
            obj = _position(random, kind, placed)
            if obj is None:
                return None
            placed.append(obj)
        groups.append(tuple(placed[-count:]))
    # Large groups before small ones, then from left to right.
    groups.sort(key=lambda group: (group[0].size != "large", centre(group)[0]))
    for group, other in pairwise(groups):
        has_same_size = group[0].size == other[0].size
        if has_same_size and centre(other)[0] - centre(group)[0] < ORDER_MARGIN:
            return None
    return tuple(groups)


def _position(
    random: Random, kind: tuple[str, str, str], placed: list[SceneObject]
) -> SceneObject | None:
    """Return an object at a free random position, or None if none was found."""
    shape, colour, size = kind
    radius = random.uniform(*RADII[size])
    low, high = radius + MARGIN, 1 - radius - MARGIN
    for _ in range(10):
        x, y = random.uniform(low, high), random.uniform(low, high)
        distance = radius + MARGIN
        if all(max(abs(x - o.x), abs(y - o.y)) > distance + o.radius for o in placed):
            return SceneObject(shape, colour, size, x, y, radius)
    return None


def _background(random: Random) -> Background:
    return Background(_level(random), random.choice((0, random.randint(12, 40))))


def _level(random: Random) -> int:
    return random.choice((random.randint(20, 60), random.randint(205, 245)))


def _star() -> tuple[tuple[float, float], ...]:
    """Return the corners of a regular five-pointed star."""
    inner = math.sin(math.pi / 10) / math.sin(3 * math.pi / 10)
    polar = [(1.0 if corner % 2 == 0 else inner, corner * math.pi / 5) for corner in range(10)]
    return tuple((radius * math.sin(angle), -radius * math.cos(angle)) for radius, angle in polar)


_HALF = math.sqrt(0.5)
_ARM = 0.3
_LENGTH = math.sqrt(1 - _ARM**2)
_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "circle": (),
    "square": ((-_HALF, -_HALF), (_HALF, -_HALF), (_HALF, _HALF), (-_HALF, _HALF)),
    "triangle": ((0, -1), (math.cos(math.pi / 6), 0.5), (-math.cos(math.pi / 6), 0.5)),
    "star": _star(),
    "cross": (
        *((-_ARM, -_LENGTH), (_ARM, -_LENGTH), (_ARM, -_ARM)),
        *((_LENGTH, -_ARM), (_LENGTH, _ARM), (_ARM, _ARM)),
        *((_ARM, _LENGTH), (-_ARM, _LENGTH), (-_ARM, _ARM)),
        *((-_LENGTH, _ARM), (-_LENGTH, -_ARM), (-_ARM, -_ARM)),
    ),
}
"""Corners of shapes with radius 1, centred at 0; y points downwards."""

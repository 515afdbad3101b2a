"""Rendered videos of moving shapes, of which all is known.

One coloured shape sets out to the left, the right, up or down, slowly or quickly. It may bounce off
the edge, hit another shape, which then moves on in its place, or pass by another. A video depends
on its seed and its number alone; its reference is `moving/SEED/NUMBER`.
"""

from dataclasses import dataclass, replace
from itertools import count
from random import Random

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.core.tables import with_article
from regard.data.datasets.loading import fill_parts, parse_argument, parse_reference, with_sizes
from regard.data.datasets.synthetic.scenes import NUM_HELD_OUT, NUM_TRAIN
from regard.data.datasets.synthetic.scenes.rendering import render_scene
from regard.data.datasets.synthetic.scenes.things import (
    GAP,
    LOOKS,
    Background,
    Scene,
    Thing,
)
from regard.data.example import Example
from regard.data.splits import Splits

DIRECTIONS: dict[str, tuple[int, int]] = {
    "left": (-1, 0),
    "right": (1, 0),
    "up": (0, -1),
    "down": (0, 1),
}
"""How far across and how far down each leads."""
SPEEDS: dict[str, tuple[float, float]] = {"slowly": (0.14, 0.2), "quickly": (0.32, 0.38)}
"""The least and the greatest share of the canvas that a shape moves in the whole video."""
EVENTS = ("alone", "bounce", "hit", "pass")
RADII = (0.11, 0.135)
"""As large as two of them in a line leave room to move; smaller ones look alike in small frames."""


@dataclass(frozen=True)
class Motion:
    """What happens in a video."""

    seed: int
    number: int
    mover: Thing
    """What moves, where it begins."""
    other: Thing | None
    """What it hits or passes, where it begins."""
    direction: str
    """A name of `DIRECTIONS`."""
    speed: str
    """A name of `SPEEDS`."""
    event: str
    """A name of `EVENTS`."""
    distance: float
    """How far things move in all."""
    turn: float
    """After which share of the time it bounces or hits; 1 = never."""
    background: Background

    @property
    def caption(self) -> str:
        """What is said of it: `a red circle moves slowly left and hits a blue square`."""
        words = f"{_name(self.mover)} moves {self.speed} {self.direction}"
        if self.event == "bounce":
            return f"{words} and bounces off the edge"
        if self.other is None:
            return words
        between = "and hits" if self.event == "hit" else "past"
        return f"{words} {between} {_name(self.other)}"

    @property
    def tags(self) -> tuple[str, ...]:
        """What is worth knowing of it where errors are looked at."""
        return self.event, self.speed, self.direction

    def at(self, time: float) -> Scene:
        """Return what is to be seen at a time from 0 to 1."""
        before, after = min(time, self.turn), max(0.0, time - self.turn)
        is_back = self.event == "bounce"
        things = [self._moved(self.mover, before - after if is_back else before)]
        if self.other is not None:
            things.append(self._moved(self.other, after))
        return Scene(self.seed, self.number, tuple((thing,) for thing in things), self.background)

    def _moved(self, thing: Thing, share: float) -> Thing:
        across, down = DIRECTIONS[self.direction]
        far = share * self.distance
        return replace(thing, x=thing.x + across * far, y=thing.y + down * far)


def find_motion(reference: str) -> Motion:
    """Return what happens in the video of a reference such as `moving/0/17`."""
    _, seed, number = parse_reference(reference, ("moving",), "A video of moving shapes")
    return motion(seed, number)


def motion(seed: int, number: int) -> Motion:
    """Return what happens in a video, which depends on its seed and its number alone."""
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"moving {seed} {number}")
    event, direction = random.choice(EVENTS), random.choice(list(DIRECTIONS))
    speed = random.choice(list(SPEEDS))
    distance = random.uniform(*SPEEDS[speed])
    radii = [random.uniform(*RADII) for _ in range(2)]
    turn = random.uniform(0.4, 0.6) if event in ("bounce", "hit") else 1.0
    starts = _lay_out(random, event, moved=(distance, turn), radii=radii)
    things = [
        _put(look, radius, start=start, direction=direction)
        for look, radius, start in zip(random.sample(LOOKS, 2), radii, starts, strict=False)
    ]
    level = random.choice((random.randint(20, 60), random.randint(205, 245)))
    return Motion(
        seed=seed,
        number=number,
        mover=things[0],
        other=things[1] if len(things) > 1 else None,
        direction=direction,
        speed=speed,
        event=event,
        distance=distance,
        turn=turn,
        background=Background(level, 0),
    )


def render_motion(found: Motion, *, num_frames: int, size: int) -> NDArray[np.uint8]:
    """Render a video, evenly from its beginning to its end: (F, Y, X, 3).

    Args:
        found: What happens.
        num_frames: How many frames.
        size: Width and height of each, in pixels.
    """
    times = np.linspace(0.0, 1.0, num_frames).tolist()
    return np.stack([render_scene(found.at(time), size=size) for time in times])


def render_reference(reference: str, num_frames: int, size: int) -> NDArray[np.uint8]:
    """Render the video of a reference such as `moving/0/17`: (F, Y, X, 3)."""
    return render_motion(find_motion(reference), num_frames=num_frames, size=size)


def load_moving(argument: str, seed: int) -> Splits:
    """Return videos of moving shapes with captions, or with the direction in which they set out.

    Args:
        argument: Nothing for captions, or `directions`; and a number of training examples, as in
            `2000` or `directions,2000`.
        seed: Other videos.
    """
    kind, num_train = parse_argument(argument, "moving", ("", "directions"))

    def write(found: Motion) -> list[Example]:
        target = found.direction if kind else found.caption
        return [Example(f"moving/{found.seed}/{found.number}", target, tags=found.tags)]

    samples = (motion(seed, number) for number in count())
    wanted = (num_train or NUM_TRAIN, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(samples, write, wanted, key=lambda found: found.caption)
    return with_sizes(parts, f"moving shapes of seed {seed}, no caption is shared")


def _lay_out(
    random: Random, event: str, *, moved: tuple[float, float], radii: list[float]
) -> list[tuple[float, float]]:
    """Return where things begin: how far along the direction, and how far to the side of it."""
    distance, turn = moved
    first, second = radii
    aside = random.uniform(first + GAP, 1 - first - GAP)
    if event == "bounce":
        return [(1 - first - turn * distance, aside)]
    low, high = first + GAP, 1 - first - GAP
    if event == "alone":
        return [(random.uniform(low, high - distance), aside)]
    touch = first + second
    if event == "hit":
        rest = 1 - second - GAP - distance - touch
        begin = random.uniform(low, max(low, rest))
        # Both are in a line, and so must fit into it.
        aside = random.uniform(max(radii) + GAP, 1 - max(radii) - GAP)
        return [(begin, aside), (begin + turn * distance + touch, aside)]
    begin = random.uniform(low, high - distance)
    along = begin + distance / 2
    clear = touch + GAP
    ways = [way for way in (-1, 1) if second + GAP <= aside + way * clear <= 1 - second - GAP]
    return [(begin, aside), (along, aside + random.choice(ways) * clear)]


def _put(
    look: tuple[str, str], radius: float, *, start: tuple[float, float], direction: str
) -> Thing:
    """Turn a position along a direction into one on the canvas."""
    along, aside = start
    across, down = DIRECTIONS[direction]
    if across + down < 0:
        along = 1 - along
    x, y = (along, aside) if across else (aside, along)
    return Thing(look[0], look[1], "small", x, y, radius)


def _name(thing: Thing) -> str:
    return with_article(f"{thing.colour} {thing.shape}")

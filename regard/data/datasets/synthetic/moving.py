"""Rendered videos of moving shapes with captions.

A coloured shape moves left, right, up or down, slowly or quickly. It may bounce off the edge, pass
by another shape, or hit another, which then moves instead. A video depends on its seed and number
only; its reference is `moving/SEED/NUMBER`.
"""

from dataclasses import dataclass, replace
from itertools import count
from random import Random

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.core.tables import with_article
from regard.data.datasets.loading import build_splits, fill_parts, parse_argument, parse_reference
from regard.data.datasets.synthetic.scenes import NUM_HELD_OUT, NUM_TRAIN
from regard.data.datasets.synthetic.scenes.objects import (
    APPEARANCES,
    MARGIN,
    Background,
    Scene,
    SceneObject,
)
from regard.data.datasets.synthetic.scenes.rendering import render_scene
from regard.data.example import Example
from regard.data.splits import Splits

DIRECTIONS: dict[str, tuple[int, int]] = {
    "left": (-1, 0),
    "right": (1, 0),
    "up": (0, -1),
    "down": (0, 1),
}
"""Unit vectors (x, y) by direction; y points downwards."""
SPEEDS: dict[str, tuple[float, float]] = {"slowly": (0.14, 0.2), "quickly": (0.32, 0.38)}
"""Minimum and maximum distance that a shape moves, as a fraction of the frame, by speed."""
EVENTS = ("alone", "bounce", "hit", "pass")
RADII = (0.11, 0.135)
"""Minimum and maximum radius: two shapes in a line must have space to move, and shapes must be
distinguishable in small frames."""


@dataclass(frozen=True)
class Motion:
    """Content of a video."""

    seed: int
    number: int
    mover: SceneObject
    """Moving object at its start position."""
    other: SceneObject | None
    """Object that it hits or passes, at its start position."""
    direction: str
    """Key of `DIRECTIONS`."""
    speed: str
    """Key of `SPEEDS`."""
    event: str
    """Entry of `EVENTS`."""
    distance: float
    """Total distance that objects move."""
    turn: float
    """Time of the bounce or hit as a fraction of the video; 1 = none."""
    background: Background

    @property
    def caption(self) -> str:
        """Caption such as `a red circle moves slowly left and hits a blue square`."""
        words = f"{_name(self.mover)} moves {self.speed} {self.direction}"
        if self.event == "bounce":
            return f"{words} and bounces off the edge"
        if self.other is None:
            return words
        between = "and hits" if self.event == "hit" else "past"
        return f"{words} {between} {_name(self.other)}"

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags for error analysis."""
        return self.event, self.speed, self.direction

    def at(self, time: float) -> Scene:
        """Return the scene at a time from 0 to 1."""
        before, after = min(time, self.turn), max(0.0, time - self.turn)
        bounces = self.event == "bounce"
        objects = [self._moved(self.mover, before - after if bounces else before)]
        if self.other is not None:
            objects.append(self._moved(self.other, after))
        return Scene(self.seed, self.number, tuple((obj,) for obj in objects), self.background)

    def _moved(self, obj: SceneObject, share: float) -> SceneObject:
        across, down = DIRECTIONS[self.direction]
        distance = share * self.distance
        return replace(obj, x=obj.x + across * distance, y=obj.y + down * distance)


def find_motion(reference: str) -> Motion:
    """Return the motion of a reference such as `moving/0/17`."""
    _, seed, number = parse_reference(reference, ("moving",), "A video of moving shapes")
    return sample_motion(seed, number)


def sample_motion(seed: int, number: int) -> Motion:
    """Return a random motion, determined by its seed and number."""
    at_least("seed", seed, 0)
    at_least("number", number, 0)
    random = Random(f"moving {seed} {number}")
    event, direction = random.choice(EVENTS), random.choice(list(DIRECTIONS))
    speed = random.choice(list(SPEEDS))
    distance = random.uniform(*SPEEDS[speed])
    radii = [random.uniform(*RADII) for _ in range(2)]
    turn = random.uniform(0.4, 0.6) if event in ("bounce", "hit") else 1.0
    starts = _start_positions(random, event, moved=(distance, turn), radii=radii)
    appearances = random.sample(APPEARANCES, 2)
    objects = [
        _build_object(appearance, radius, start=start, direction=direction)
        for appearance, radius, start in zip(appearances, radii, starts, strict=False)
    ]
    level = random.choice((random.randint(20, 60), random.randint(205, 245)))
    return Motion(
        seed=seed,
        number=number,
        mover=objects[0],
        other=objects[1] if len(objects) > 1 else None,
        direction=direction,
        speed=speed,
        event=event,
        distance=distance,
        turn=turn,
        background=Background(level, 0),
    )


def render_motion(motion: Motion, *, num_frames: int, size: int) -> NDArray[np.uint8]:
    """Render a video with frames at equal intervals, (F, Y, X, 3).

    Args:
        motion: Content of the video.
        num_frames: Number of frames.
        size: Width and height of a frame, in pixels.
    """
    times = np.linspace(0.0, 1.0, num_frames).tolist()
    return np.stack([render_scene(motion.at(time), size=size) for time in times])


def render_reference(reference: str, num_frames: int, size: int) -> NDArray[np.uint8]:
    """Render the video of a reference such as `moving/0/17`: (F, Y, X, 3)."""
    return render_motion(find_motion(reference), num_frames=num_frames, size=size)


def load_moving(argument: str, seed: int) -> Splits:
    """Generate videos of moving shapes with captions, or with their first direction.

    Args:
        argument: Empty for captions, or `directions`; and a number of training examples, as in
            `2000` or `directions,2000`.
        seed: Seed of the videos.
    """
    kind, num_train = parse_argument(argument, "moving", ("", "directions"))

    def write(motion: Motion) -> list[Example]:
        target = motion.direction if kind else motion.caption
        return [Example(f"moving/{motion.seed}/{motion.number}", target, tags=motion.tags)]

    samples = (sample_motion(seed, number) for number in count())
    wanted = (num_train or NUM_TRAIN, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(samples, write, wanted, key=lambda motion: motion.caption)
    return build_splits(parts, f"moving shapes of seed {seed}, no caption is shared")


def _start_positions(
    random: Random, event: str, *, moved: tuple[float, float], radii: list[float]
) -> list[tuple[float, float]]:
    """Return the start positions: coordinate along the direction, and perpendicular to it."""
    distance, turn = moved
    first, second = radii
    aside = random.uniform(first + MARGIN, 1 - first - MARGIN)
    if event == "bounce":
        return [(1 - first - turn * distance, aside)]
    low, high = first + MARGIN, 1 - first - MARGIN
    if event == "alone":
        return [(random.uniform(low, high - distance), aside)]
    touch = first + second
    if event == "hit":
        limit = 1 - second - MARGIN - distance - touch
        begin = random.uniform(low, max(low, limit))
        # Both objects are in a line, so the larger one limits its position.
        aside = random.uniform(max(radii) + MARGIN, 1 - max(radii) - MARGIN)
        return [(begin, aside), (begin + turn * distance + touch, aside)]
    begin = random.uniform(low, high - distance)
    along = begin + distance / 2
    offset = touch + MARGIN
    low, high = second + MARGIN, 1 - second - MARGIN
    signs = [sign for sign in (-1, 1) if low <= aside + sign * offset <= high]
    return [(begin, aside), (along, aside + random.choice(signs) * offset)]


def _build_object(
    appearance: tuple[str, str], radius: float, *, start: tuple[float, float], direction: str
) -> SceneObject:
    """Return an object with its start position converted to image coordinates."""
    along, aside = start
    across, down = DIRECTIONS[direction]
    if across + down < 0:
        along = 1 - along
    x, y = (along, aside) if across else (aside, along)
    return SceneObject(*appearance, "small", x, y, radius)


def _name(obj: SceneObject) -> str:
    return with_article(f"{obj.colour} {obj.shape}")

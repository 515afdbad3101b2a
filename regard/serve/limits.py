"""Limits of requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from regard.core.config import Config, Within
from regard.search.settings import SearchConfig
from regard.serve.errors import RequestError, invalid


@dataclass(frozen=True, kw_only=True)
class Limits(Config):
    """Limits of requests; a request beyond one is refused with a status from 400 to 499."""

    body: Annotated[int, Within(1_000, 1_000_000_000)] = 20_000_000
    """Bytes of the body of a request, uploads included."""
    bodies: Annotated[int, Within(1_000, 100_000_000_000)] = 500_000_000
    """Bytes of the bodies of all requests at a time."""
    sentences: Annotated[int, Within(1, 1_000_000)] = 128
    """Sources of a request."""
    characters: Annotated[int, Within(1, 10_000_000)] = 5_000
    """Characters of a source."""
    beams: Annotated[int, Within(1, 1000)] = 16
    """Beams, samples and predictions per source."""
    tokens: Annotated[int, Within(1, 100_000)] = 512
    """Tokens that requests may add to the length of targets: `search.max_extra`."""
    pixels: Annotated[int, Within(1, 2**30)] = 20_000_000
    """Pixels of an image."""
    audio: Annotated[float, Within(0.1, 36_000.0)] = 60.0
    """Seconds of a recording."""
    seconds: Annotated[float, Within(0.1, 36_000.0)] = 60.0
    """Seconds until a request is answered."""
    queue: Annotated[int, Within(1, 1_000_000)] = 1_024
    """Sources of a run that wait for their batch."""
    explained: Annotated[int, Within(1, 100_000)] = 500
    """Characters of a source whose prediction is explained by attribution or what-if analysis."""
    weights: Annotated[int, Within(1, 1_000_000_000)] = 2_000_000
    """Attention weights of a reply."""

    def check_sources(self, sources: Sequence[str]) -> None:
        """Raise if there are too many texts, or if one is too long."""
        if not sources:
            raise invalid("A request must have at least one source, but has none.")
        if len(sources) > self.sentences:
            raise RequestError(
                413,
                f"A request may have {self.sentences:,} sources, but has {len(sources):,}. Send "
                "several requests.",
            )
        for source in sources:
            if len(source) > self.characters:
                raise RequestError(
                    413,
                    f"A source may have {self.characters:,} characters, but one has "
                    f"{len(source):,}. Split it.",
                )

    def check_search(self, search: SearchConfig, own: SearchConfig) -> None:
        """Raise if search settings would take too long; those of the run are always allowed.

        Args:
            search: The settings asked for.
            own: The settings of the run.
        """
        if search.precision == "auto":
            raise invalid("`search.precision` must be 'fp32', 'bf16' or 'int8' in a request.")
        bounds = {
            "beams": self.beams,
            "consensus": self.beams,
            "max_extra": self.tokens,
            "min_length": self.tokens,
            "max_ratio": own.max_ratio,
        }
        for name, bound in bounds.items():
            allowed, value = max(bound, getattr(own, name)), getattr(search, name)
            if value > allowed:
                raise invalid(f"`search.{name}` must be at most {allowed:g} here, but is {value}.")

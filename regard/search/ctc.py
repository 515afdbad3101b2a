"""Search by what the encoder's states say: prefixes scored over all alignments, or one path."""

from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.models.interfaces import Emissions, State, join_states, repeat_rows, split_state
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer


class CtcScorer:
    """Log-probabilities of the next token by CTC, over every alignment of what was written.

    Watanabe et al. 2017, algorithm 2, after Graves 2008: the probability that a labelling begins
    with a prefix, divided by that of the prefix without its last token; that it ends there, for
    the end token. So any search over it is one without a decoder, and with beams it is prefix beam
    search.

    Args:
        emissions: What the encoder's states say.
        start: The start token.
        end: The end token.
        banned: Tokens that may never be chosen, as with `ModelScorer`.
    """

    def __init__(
        self, emissions: Emissions, *, start: int, end: int, banned: tuple[int, ...]
    ) -> None:
        self.batch, self.num_positions, _ = emissions.log_probs.shape
        self.device = emissions.log_probs.device
        places = torch.arange(self.num_positions, device=self.device)
        lengths = emissions.lengths.to(self.device)
        # No alignment goes on after the end of its source.
        real = (places < lengths[:, None])[..., None]  # (B, S, 1)
        log_probs = emissions.log_probs.masked_fill(~real, -torch.inf)
        self.tokens, self.blank = log_probs[..., :-1], log_probs[..., -1]
        self.last = lengths - 1
        self.sos, self.eos, self.banned = start, end, list(banned)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence.

        Per hypothesis: for each position the log-probability of what was written so far, the last
        state saying its last token (`said`) or nothing (`silent`), both (B·W, S); the prefix's own
        (B·W,); and its last token (B·W,), -1 before the first.
        """
        silent = self.blank.cumsum(1)  # (B, S)
        per_hypothesis = {
            "said": torch.full_like(silent, -torch.inf),
            "silent": silent,
            "prefix": silent.new_zeros(self.batch),
            "last": torch.full_like(self.last, -1),
        }
        return State((), repeat_rows(per_hypothesis, beams))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        beams = len(tokens) // self.batch
        before = state.per_hypothesis
        after = self._advance(tokens, before, beams)
        is_first = tokens == self.sos
        now = {
            name: before[name].where(is_first.view(-1, *[1] * (value.dim() - 1)), value)
            for name, value in after.items()
        }
        return self._next(now, beams), State((), now)

    def _advance(self, tokens: Tensor, before: dict[str, Tensor], beams: int) -> dict[str, Tensor]:
        """Return where hypotheses stand after one more token each, (B·W,)."""
        enter = _enter(before, is_again=(tokens == before["last"])[:, None])  # (B·W, S)
        own = self._emitted(tokens, beams)
        blank = repeat_rows(self.blank, beams)
        said = silent = torch.full_like(own[:, 0], -torch.inf)
        both = []
        for place in range(self.num_positions):
            # The order matters: a blank follows what was said before it.
            silent = blank[:, place] + torch.logaddexp(silent, said)
            said = own[:, place] + torch.logaddexp(said, enter[:, place])
            both.append((said, silent))
        all_said, all_silent = (torch.stack(part, 1) for part in zip(*both, strict=True))
        prefix = (enter + own).logsumexp(1)
        return {"said": all_said, "silent": all_silent, "prefix": prefix, "last": tokens}

    def _emitted(self, tokens: Tensor, beams: int) -> Tensor:
        """Return the log-probability of one token a hypothesis at each position, (B·W, S)."""
        index = tokens.view(self.batch, 1, beams).expand(-1, self.num_positions, -1)
        return self.tokens.gather(2, index).transpose(1, 2).flatten(0, 1)  # (B·W, S)

    def _next(self, now: dict[str, Tensor], beams: int) -> Tensor:
        """Return the log-probability of every next token, (B·W, V)."""
        enter = _enter(now).view(self.batch, beams, -1, 1)  # (B, W, S, 1)
        longer = (enter + self.tokens[:, None]).logsumexp(2).flatten(0, 1)  # (B·W, V)
        # The same token again needs a blank in between.
        last = now["last"].clamp(min=0)[:, None]
        own = self._emitted(last, beams)
        again = (_enter(now, is_again=now["last"][:, None] >= 0) + own).logsumexp(1)
        longer = longer.scatter(1, last, again[:, None])
        ends = repeat_rows(self.last, beams)[:, None]
        whole = torch.logaddexp(now["said"], now["silent"]).gather(1, ends)[:, 0]
        longer[:, self.eos] = whole
        longer[:, self.banned] = -torch.inf
        # What follows an impossible prefix is impossible, too.
        return (longer - now["prefix"][:, None]).nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def _enter(now: dict[str, Tensor], is_again: Tensor | None = None) -> Tensor:
    """Return for each position (B·W, S) how likely a new token may begin there."""
    whole = torch.logaddexp(now["said"], now["silent"])
    if is_again is not None:
        whole = now["silent"].where(is_again, whole)
    entered = pad(whole[:, :-1], (1, 0), value=-torch.inf)
    # Only the first token may begin at the first position.
    entered[:, 0] = entered[:, 0].where(now["last"] >= 0, 0.0)
    return entered


class JointScorer:
    """A decoder and CTC side by side: (1 − w) log p + w log p_ctc (Watanabe et al. 2017, eq. 14).

    Args:
        decoder: What the decoder says.
        ctc: What the encoder's states say.
        weight: The share of the latter, below 1.
    """

    def __init__(self, decoder: Scorer, ctc: CtcScorer, *, weight: float) -> None:
        self.decoder = decoder
        self.ctc = ctc
        self.weight = weight
        self.batch, self.device = decoder.batch, decoder.device

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        return join_states([self.decoder.start(beams, max_length), self.ctc.start(beams)])

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a hypothesis, (B·W,), and return weighted log-probabilities (B·W, V)."""
        own, other = split_state(state)
        said, after = self.decoder.step(tokens, own)
        heard, ctc_after = self.ctc.step(tokens, other)
        weighted = (1 - self.weight) * said + self.weight * heard.to(said.dtype)
        return weighted, join_states([after, ctc_after])


def best_path(emissions: Emissions, *, end: int, banned: tuple[int, ...]) -> list[list[Hypothesis]]:
    """Take the likeliest class at each position; repeats are one token, blanks are none.

    Quick, and the likeliest alignment, but not always the likeliest labelling (Graves et al. 2006,
    section 3.2).

    Args:
        emissions: What the encoder's states say.
        end: The end token.
        banned: Tokens that may never be chosen.

    Returns:
        One hypothesis a sentence, whose log-probabilities are those of its path: what stands
        between a token and the next is the token's.
    """
    log_probs = emissions.log_probs.clone()
    log_probs[..., [end, *banned]] = -torch.inf
    values, classes = log_probs.max(-1)
    rows = zip(classes.tolist(), values.tolist(), emissions.lengths.tolist(), strict=True)
    return [
        [_collapse(chosen[:length], said[:length], blank=emissions.blank, end=end)]
        for chosen, said, length in rows
    ]


def _collapse(chosen: list[int], said: list[float], *, blank: int, end: int) -> Hypothesis:
    tokens, steps, pending, place = [], [], 0.0, 0
    for token, run in groupby(chosen):
        length = len(list(run))
        pending += sum(said[place : place + length])
        place += length
        if token != blank:
            tokens.append(token)
            steps.append(pending)
            pending = 0.0
    steps.append(pending)
    total = sum(steps)
    return Hypothesis((*tokens, end), total, tuple(steps), total)

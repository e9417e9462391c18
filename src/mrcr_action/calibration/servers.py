"""Healthy servers that could have given the answers that were seen. Pure; no I/O.

Of every sample there are a few repetitions. What it would score the next time is not known from
those alone: a sample that never moved in five may move in the sixth. So servers are drawn that
could each have answered so, and runs of each of them.

- A *flip* is a score that lies `FLIP` or more from the sample's median: another needle, no nonce.
  How often a sample flips is drawn given its own flips and those of all others: chances to flip
  have a beta distribution of mean m and weight w over the samples, so that flips are beta-binomial
  (Skellam, Journal of the Royal Statistical Society B 10, 1948). m and w are drawn from what the
  flips of all samples leave likely, with m as likely anywhere from 0 to 1 before. Where samples are
  alike, a cell in which nothing flipped yet will flip as often as the others; where some flip
  always and others never, w is small and each is taken for itself. Of n samples that never flipped
  in N repetitions, m is then below 3 / (n N) nineteen times in twenty, which is the rule of three
  (Hanley and Lippman-Hand, JAMA 249, 1983).
- A sample that never flipped falls, when it does, as far as another one was seen to move; if none
  was, to 0.
- All else is *jitter*: the weights of a sample's own scores are drawn (Rubin's Bayesian bootstrap,
  Annals of Statistics 9, 1981), and with them that of one more score, as in a Dirichlet process of
  weight 1 (Ferguson, Annals of Statistics 1, 1973): its mean, moved as another sample was seen to
  move. So a new score comes from elsewhere once in N + 1 times.
- A sample more than half of whose scores are flips has no usual score; all of them are jitter.
- Scores are stretched around the sample's mean by sqrt((N + 1) / (N - 1)): few repetitions show too
  little spread (Rao and Wu, JASA 83, 1988), and drawn weights leave too little doubt about a mean.
  With that factor both come out as they are for normal scores, s and s / sqrt(N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FLIP = 0.1
"""What `mrcr compare` calls a flip, too."""

WEIGHTS = tuple(10 ** (k / 4) for k in range(-4, 13))
"""Of the beta distribution of chances to flip: from 0.1, all or nothing, to 1,000, all alike."""

_ODDS = 400
"""Means of that distribution that are told apart."""


@dataclass(frozen=True)
class Server:
    """One server: for every sample its possible scores, and how likely each is."""

    scores: Numbers
    """A row a sample."""
    chances: Numbers
    """Likewise; a row sums to 1."""

    def runs(self, count: int, random: np.random.Generator) -> Numbers:
        """Scores of so many runs, a row each."""
        steps = np.diff(self.scores, axis=1)
        edges = np.cumsum(self.chances, axis=1)[:, :-1]
        drawn = random.random((count, len(self.scores)))
        found = np.tile(self.scores[:, 0], (count, 1))
        for column in range(steps.shape[1]):
            found += (drawn >= edges[:, column]) * steps[:, column]
        return found


class Evidence:
    """What the repetitions of one round tell."""

    def __init__(self, seen: Numbers) -> None:
        """Look at scores, a row a sample and a column a repetition, at least two."""
        self.samples, self.repeats = seen.shape
        median = np.sort(seen, axis=1)[:, self.repeats // 2, None]
        means = seen.mean(axis=1, keepdims=True)
        far = np.abs(seen - median) >= FLIP
        self.steady = far.sum(axis=1) <= self.repeats / 2
        self.flipped = far & self.steady[:, None]
        stretch = math.sqrt((self.repeats + 1) / (self.repeats - 1))
        own = means + stretch * (seen - means)
        self.own = np.where(self.steady[:, None], np.clip(own, 0, 1), own)
        self.means, self.medians = means[:, 0], median[:, 0]
        self.flips = self.flipped.sum(axis=1)
        self.falls = np.abs(seen - median)[self.flipped]
        steady = np.where(self.flipped, np.nan, seen)
        moves = stretch * (steady - np.nanmean(steady, axis=1, keepdims=True))
        self.moves = moves[~self.flipped]
        counts = np.bincount(self.flips[self.steady], minlength=self.repeats + 1)
        self._means, self._weights, self._likely = _likely(tuple(counts.tolist()))

    def server(self, random: np.random.Generator) -> Server:
        """A server that could have answered so."""
        n, repeats = self.samples, self.repeats
        at = random.choice(len(self._likely), p=self._likely)
        mean, weight = self._means[at], self._weights[at]
        chance = random.beta(weight * mean + self.flips, weight * (1 - mean) + repeats - self.flips)
        # A column for each own score, one for a move not seen yet, one for a flip not seen yet.
        scores = np.empty((n, repeats + 2))
        scores[:, :repeats] = self.own
        scores[:, repeats] = np.clip(self.means + random.choice(self.moves, n), 0, 1)
        fall = random.choice(self.falls, n) if self.falls.size else self.medians
        scores[:, repeats + 1] = np.clip(self.medians - fall, 0, 1)
        flip = np.column_stack((self.flipped, np.zeros(n, bool), self.flips == 0))
        shares = random.standard_exponential((n, repeats + 2))
        for kind, of_kind in ((flip, chance), (~flip & _but_last(n, repeats), 1 - chance)):
            part = np.where(kind, shares, 0)
            part *= (of_kind / part.sum(axis=1))[:, None]
            shares = np.where(kind, part, shares)
        shares[:, -1] = np.where(self.flips == 0, shares[:, -1], 0)
        return Server(scores, shares)


def _but_last(n: int, repeats: int) -> NDArray[np.bool_]:
    found = np.ones((n, repeats + 2), bool)
    found[:, -1] = False
    return found


@lru_cache(maxsize=16)
def _likely(counts: tuple[int, ...]) -> tuple[Numbers, Numbers, Numbers]:
    """Means and weights of the beta distribution, and how likely each pair is.

    Args:
        counts: how many samples flipped 0, 1, 2… times.
    """
    repeats = len(counts) - 1
    odds = np.linspace(-14, 10, _ODDS)
    mean, weight = (grid.ravel() for grid in np.meshgrid(1 / (1 + np.exp(-odds)), WEIGHTS))
    a, b = weight * mean, weight * (1 - mean)
    log = np.log(mean * (1 - mean))  # equal steps of the odds, but equal chances of the mean
    for flips, samples in enumerate(counts):
        if samples:
            rising = sum(np.log(a + k) for k in range(flips)) + sum(
                np.log(b + k) for k in range(repeats - flips)
            )
            log += samples * (rising - sum(np.log(weight + k) for k in range(repeats)))
    likely = np.exp(log - log.max())
    return mean, weight, likely / likely.sum()

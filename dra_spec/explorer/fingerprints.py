"""128-bit fingerprints of states, for searches whose rows are too wide to keep: what they are, and what they leave open.

The fingerprint of a state is the exclusive or of one key per slot, chosen by the number of the slot's value (tabulation hashing: Carter
and Wegman, "Universal classes of hash functions", 1979). Numbers of values never change, so it is the same in every layout of the rows.
Keys are the output of SHAKE-256, taken as random bits: then two states that differ have the same fingerprint with probability 2^-128.
"""

from __future__ import annotations

import hashlib
import math

import attrs
import numpy as np
from numpy.typing import NDArray

_BITS = 128
_FULL_WORDS = 4  # rows of up to so many words of 64 bits are kept as they are
_SEED = b"dra-spec fingerprints 1 "
WHOLE_GRAPH = "it is about the whole graph of states, which a search with fingerprints does not keep"


@attrs.frozen
class Fingerprints:
    """What became of the wish for fingerprints. `bits`: 0 where full rows were kept, for the reason that `why` gives.

    `omission`: at most so large is the probability that a reachable state was left out; 0 with full rows.
    """

    bits: int
    omission: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        if not self.bits:
            return f"no fingerprints, exact: {self.why}"
        return (
            f"{self.bits}-bit fingerprints: probability that a state was omitted at most N(N+1)/2^{self.bits + 1} = {_above(self.omission)}"
        )


def used(states: int) -> Fingerprints:
    """The report of a search that stored so many states.

    A first state is left out when it meets one of the states stored until then; so among the first N + 1 different states that the search
    without fingerprints would meet, two have one fingerprint, and there are N (N + 1) / 2 pairs (Stern and Dill, "Improved probabilistic
    verification by hash compaction", 1995, count likewise).
    """
    return Fingerprints(_BITS, min(1.0, states * (states + 1) / 2 ** (_BITS + 1)))


def unused(why: str) -> Fingerprints:
    """The report of a search that kept full rows."""
    return Fingerprints(0, 0.0, why)


def together(reports: list[Fingerprints]) -> Fingerprints:
    """One report for searches of parts of a model: a state may be left out in any of them."""
    bits = max(report.bits for report in reports)
    return Fingerprints(bits, min(1.0, sum(report.omission for report in reports)), "" if bits else reports[0].why)


def too_wide(words: int) -> bool:
    """Whether rows of so many words are not kept where fingerprints are allowed."""
    return words > _FULL_WORDS


def room() -> str:
    """What is kept as it is, in words."""
    return f"rows have at most {64 * _FULL_WORDS} bits and are kept as they are"


def keys(limits: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Per slot where its keys begin, and all keys, two words each; `limits`: how many values of each slot need one."""
    first = np.zeros(len(limits), np.int64)
    first[1:] = np.cumsum(limits)[:-1]
    drawn = b"".join(hashlib.shake_256(_SEED + str(slot).encode()).digest(16 * int(limit)) for slot, limit in enumerate(limits))
    words = np.frombuffer(drawn, "<u8").astype(np.uint64).reshape(-1, 2)
    words[:, 0] &= np.uint64((1 << min(_BITS, 64)) - 1)
    words[:, 1] &= np.uint64((1 << max(_BITS - 64, 0)) - 1)
    return first, words


def _above(probability: float) -> str:
    """Rounded up to one digit."""
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    exponent = math.floor(math.log10(probability))
    digit = math.ceil(probability / 10.0**exponent - 1e-9)
    return f"{digit}e{exponent:+03d}" if digit < 10 else f"1e{exponent + 1:+03d}"

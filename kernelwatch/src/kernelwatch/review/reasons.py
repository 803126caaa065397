"""Why a judgement is as it is: a table of all reasons. They are data until somebody reads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Why(Enum):
    """What speaks against a change, decides a number, or is known beside it; each with places for its figures."""

    NOT_POSITIVE = "a time that is not positive cannot be right"
    FEW_SAMPLES = "{} + {} samples, at least {} a side are needed; measure with --record-samples"
    PROCESSES = "processes differ by {:.1%} in base, {:.1%} in head: together more than the change"
    CHANCE = "p = {:.2g} after correction for {} configurations"
    INTERVAL = "the interval of the ratio, {:.3f} to {:.3f}, does not confirm it"
    HELD_BACK = "the GPU was throttled or shared {}"
    SEVERAL_GPUS = "not measured on one GPU"
    COPY = "the copy beside it changed as much ({:.3f} in copies): the machine, not the kernel"
    UNCHANGED = "machine code unchanged"
    NOT_AGAIN = "same machine code, not measured again"
    TIMES = "times: {}"
    INSTRUCTIONS = "evidence, which does not decide"
    BEYOND = "beyond the project's limit of {:.3g} of base"
    UNKNOWN_BLOCKS = "how many blocks fit on a multiprocessor is not known"
    FEWER_BLOCKS = "{} blocks fit on a multiprocessor, {} before"
    AS_MANY_BLOCKS = "evidence: {} blocks fit on a multiprocessor, as before"
    ACCEPTED = "{}"


@dataclass(frozen=True)
class Reason:
    """One of them, with its figures, or with the words that somebody else chose."""

    why: Why
    figures: tuple[float | str, ...] = ()

    def __str__(self) -> str:
        return self.why.value.format(*self.figures)


#: Of two commits that have the numbers of one measurement.
NOT_AGAIN = Reason(Why.NOT_AGAIN)

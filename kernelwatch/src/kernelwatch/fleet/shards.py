"""What travels between the driver and a worker: a shard, which is to be measured, and its outcome."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from kernelwatch.store.accept.refusal import RefusedError, require

#: Configurations of a benchmark by their texts, as asv writes them behind its name; none stands for all.
Selection = Mapping[str, Sequence[str]]

#: The name of an entry of the cache of compiled kernels.
ENTRY = r"^[0-9a-f]{2}/[0-9a-f]{64}\.json\Z"


@dataclass(frozen=True)
class Shard:
    """What one worker measures in one run of asv.

    Parameters
    ----------
    commits : tuple of str
        Whose packages are measured.
    selected : mapping of str to sequence of str
        The configurations.
    device : str, optional
        UUID of the GPU that has measured these series before; any of the machine's kind if not given.
    """

    commits: tuple[str, ...]
    selected: Selection
    device: str | None = None

    @property
    def key(self) -> str:
        """A name that only this shard has."""
        said = [self.commits, {name: list(texts) for name, texts in self.selected.items()}, self.device]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    @property
    def patterns(self) -> list[str]:
        """The regular expressions that make `asv run --bench` select these configurations and no others."""
        return [
            rf"^{re.escape(name)}\((?:{'|'.join(map(re.escape, texts))})\)$" if texts else rf"^{re.escape(name)}(\(|$)"
            for name, texts in self.selected.items()
        ]


@dataclass(frozen=True)
class Outcome:
    """What a worker has measured.

    Parameters
    ----------
    device : str
        UUID of the GPU, or the worker's name without one.
    files : mapping of str to bytes
        The folder of results, by name.
    compiled : mapping of str to bytes
        New entries of the cache of compiled kernels, by name; other workers write them there.
    seconds : float
        How long it took.
    problem : str
        Why nothing was measured.
    """

    device: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    compiled: Mapping[Annotated[str, msgspec.Meta(pattern=ENTRY)], bytes] = field(default_factory=dict)
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    problem: str = ""

    def packed(self) -> bytes:
        """Return it as it travels."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def read(cls, packed: Any) -> Outcome:
        """Read what travelled. Raises RefusedError, also of a problem."""
        try:
            found = msgspec.msgpack.decode(packed, type=cls)
        except (msgspec.MsgspecError, TypeError) as error:
            raise RefusedError(f"what came back is no outcome: {error}") from None
        require(not found.problem, found.device, found.problem)
        return found

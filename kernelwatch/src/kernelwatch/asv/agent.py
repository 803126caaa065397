"""The agent of a commit: it has the commit's package, describes jobs, writes references, and keeps what was measured.

`setup_cache` begins it. The run asks it for one configuration after the other and starts no process for a time. Without
the plugin asv's processes ask it, and it begins a measuring process of its own. It ends with the fork server that asv's
processes come from.
"""

from __future__ import annotations

import io
import os
import select
import socket
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, redirect_stderr, suppress
from functools import cache
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelwatch.asv import background, timed
from kernelwatch.asv.plans.times import times, without_device
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import exchange, jobs, machine, measuring, messages
from kernelwatch.instrument.exchange import Reference, ReferenceMemory
from kernelwatch.instrument.job import Job, Outcome, Ready

if TYPE_CHECKING:
    from kernelwatch.asv.timed import Timed

#: Names in the folder of asv's cache: of its socket, and of what it prints.
SOCKET, LOG = "agent", "agent.log"

#: Seconds that an answer may take.
LIMIT = 2 * (exchange.LIMIT + exchange.BEGIN)

#: How many configurations ahead it looks for references to write while the GPU is busy, and how many it writes at once.
_AHEAD, _AT_ONCE = 60, 2

#: A timed benchmark and the place of a configuration in it.
Key = tuple[str, int]


class Question(msgspec.Struct):
    """Asks for a configuration: the benchmark of a time or of its control, and its place there."""

    benchmark: str
    place: int


class Answer(msgspec.Struct):
    """What a process of asv's would return and print: samples, or why there are none.

    Parameters
    ----------
    samples : list of float
        Seconds a launch, or copies; none if there is a reason.
    said : str
        What is printed beside them.
    skipped : str
        Why it cannot be measured here.
    failed : str
        What went wrong.
    """

    samples: list[float] = []
    said: str = ""
    skipped: str = ""
    failed: str = ""


def begin(folder: Path) -> None:
    """Begin one that answers for this commit, where there is a GPU; with the plugin, plan the commit's times before."""
    address = os.environ.get(exchange.ADDRESS)
    if address is None and machine.nvml() is None:
        without_device(timed.CLASSES, folder)
        return
    one = Agent(timed.CLASSES)
    if address is not None:
        times(one, address, folder)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / SOCKET))
    listening.listen()

    def work(server: int) -> None:
        os.nice(5)  # the measuring process comes first
        with measuring.running() if address is None else nullcontext():
            one.serve(listening, server)

    background.begin(work, folder / LOG)
    listening.close()


def ask(folder: Path, benchmark: str, place: int) -> Answer | None:
    """Return what the agent of a folder answers; None if there is none, or no longer."""
    with suppress(OSError, EOFError), Client(str(folder / SOCKET), "AF_UNIX") as connection:
        connection.send_bytes(msgspec.json.encode(Question(benchmark, place)))
        if connection.poll(LIMIT):
            return msgspec.json.decode(connection.recv_bytes(), type=Answer)
    return None


class Agent:
    """Answers one question after another.

    Parameters
    ----------
    classes : mapping
        Benchmark -> the class of its times.

    Attributes
    ----------
    classes : mapping
        As given.
    kept : dict
        What was measured to make a plan, for the first that asks.
    """

    def __init__(self, classes: Mapping[str, type[Timed]]) -> None:
        self.classes = classes
        self.kept: dict[Key, Outcome] = {}
        #: Of a configuration's samples in this run: seconds, and those of the copy just before.
        self._pairs: dict[Key, list[tuple[float, float]]] = {}
        self._described: dict[Key, jobs.Description] = {}
        self._references = WrittenAhead()
        #: All configurations, in the order in which asv asks for them.
        self._order = [(name, place) for name, each in sorted(classes.items()) for place in range(len(each.points))]

    def serve(self, listening: socket.socket, process: int) -> None:
        """Answer until a process has ended."""
        self._references = WrittenAhead()  # its threads are this process's
        ended = os.pidfd_open(process)
        waiting: list[Any] = [listening, ended]
        while ended not in select.select(waiting, [], [])[0]:
            accepted, _ = listening.accept()
            with suppress(OSError, EOFError), Connection(accepted.detach()) as connection:
                asked = msgspec.json.decode(connection.recv_bytes(), type=Question)
                connection.send_bytes(msgspec.json.encode(self.answer(asked.benchmark, asked.place)))

    def answer(self, benchmark: str, place: int) -> Answer:
        """Return what is known of a configuration, or have it measured."""
        said, found = io.StringIO(), Answer()
        with redirect_stderr(said):
            try:
                found.samples = self._samples(benchmark, place)
            except NotImplementedError as error:
                found.skipped = str(error)
            except Exception as error:  # noqa: BLE001 -- whatever it is, this configuration fails and no other
                found.failed = f"{type(error).__name__}: {error}"
                traceback.print_exc()
        found.said = said.getvalue()
        return found

    def _samples(self, benchmark: str, place: int) -> list[float]:
        control = timed.CONTROLS.get(benchmark)
        key = (control.timed.benchmark if control else benchmark), place
        if control is None or key not in self._pairs:
            found = self.kept.pop(key, None) or self._next(key)
            self._pairs.setdefault(key, []).extend(zip(found.samples, found.copies, strict=True))
            params = list(self.classes[key[0]].points[place].values())
            for reason in found.held_back:
                messages.held_back(reason, params)
            if found.stopped:
                messages.stopped(found.stopped, params)
            messages.spent(found.seconds)
            if control is None:
                return list(found.samples)
        return [round(seconds / copy, timed.DIGITS) for seconds, copy in self._pairs.pop(key)]

    def _next(self, key: Key) -> Outcome:
        at = self._order.index(key) + 1
        return self.measured(key, self._order[at : at + _AHEAD])

    def measured(self, key: Key, later: Sequence[Key]) -> Outcome:
        """Have a configuration measured; meanwhile references are written that the next ones are compared with.

        Raises
        ------
        NotImplementedError, WrongOutputError, MeasuringError
            As `exchange.ask`.
        """
        what = self.described(key)

        def describe(ready: Ready) -> Job:
            job = what.job(ready)
            self._references.look_ahead(job.reference, self._later(later, ready))
            return job

        return timed.ask(jobs.Description(describe, what.reference), self._references.write)

    def _later(self, keys: Sequence[Key], ready: Ready) -> Iterator[tuple[str, Reference]]:
        for key in keys:
            with suppress(NotImplementedError, *ERRORS):  # whoever asks for it meets it again
                what = self.described(key)
                yield what.job(ready).reference, what.reference

    def described(self, key: Key) -> jobs.Description:
        """Return a configuration's description, whose job is made once. Raises as `jobs.of`."""
        if key not in self._described:
            name, place = key
            found = self.classes[name].described(self.classes[name].points[place])
            self._described[key] = jobs.Description(cache(found.job), found.reference)
        return self._described[key]


class WrittenAhead:
    """Writes references, some of them before they are asked for: NumPy makes them while the GPU measures."""

    def __init__(self) -> None:
        self._now = ReferenceMemory()
        self._free = [ReferenceMemory() for _ in range(_AT_ONCE)]
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        #: By the bytes and the function of a reference: where it lies, once it is written.
        self._ahead: dict[Reference, tuple[ReferenceMemory, Future[int]]] = {}
        #: What jobs call those that have been written.
        self._known: set[str] = set()

    def look_ahead(self, now: str, later: Iterable[tuple[str, Reference]]) -> None:
        """Begin with the first of later references that are not known, as far as there is memory."""
        self._known.add(now)
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
        for name, reference in later if self._free else ():
            if name not in self._known:
                if sum(each.length for each in (*self._ahead, reference)) > room:
                    return
                self._known.add(name)
                memory = self._free.pop()
                self._ahead[reference] = memory, self._threads.submit(memory.write, reference)
                if not self._free:
                    return

    def write(self, reference: Reference) -> int:
        """Return the handle of memory that holds a reference. It is valid until the next is asked for."""
        if reference not in self._ahead:
            return self._now.write(reference)
        self._free.append(self._now)
        self._now, written = self._ahead.pop(reference)
        return written.result()

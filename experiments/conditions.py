"""Conditions of bulk copies and tensor maps: outcomes on a GPU, and ptxcount's verdicts on the same launches.

`python -m experiments.conditions FOLDER` runs each launch of `condition_cases` in its own process, because a fault ends
a CUDA context. Calls that only encode share one process. The command prints a table. It writes conditions.json, and
conditions.npz with the arrays after each launch, into the folder. `--check` compiles, binds and counts without a GPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from experiments import cubins
from experiments.condition_cases import CONDITIONS, RUNS, Condition
from experiments.condition_launches import (
    ARCH,
    LIMIT,
    SOURCE,
    WORDS,
    count_launch,
    digest_arrays,
    list_bytes,
    make_arguments,
    make_fields,
)
from ptxcount.source import cuda_compiler
from tests.gpu.driver import Device, list_encoding

#: Prefixes of the names of kernels that wait for the bytes of a copy.
LOADS = ("load", "im2col", "bulk_load", "replace")


class DriverError(Exception):
    """An error of the driver. The message is its name in words, such as "illegal address"."""


class RequestingDevice(Device):
    """A device whose driver calls raise `DriverError`."""

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *results = getattr(self.cu, name)(*arguments)
        if int(error):
            text = self.cu.CUresult(int(error)).name.removeprefix("CUDA_ERROR_").lower().replace("_", " ")
            raise DriverError(f"encoding: {text}" if "Encode" in name else text)
        return results[0] if len(results) == 1 else results

    def encode_for_memory(self, condition: Condition) -> None:
        """Encode the tensor map of a condition, if it has one, for newly allocated memory."""
        if condition.request:
            self.encode_map(make_fields(condition.request, int(self._call("cuMemAlloc", 1 << 20))))


def find_device_problem() -> str:
    """Return why no GPU can be used here; empty if one can."""
    try:
        from cuda.bindings import driver  # noqa: PLC0415 -- an optional package

        RequestingDevice(driver)
    except (ImportError, RuntimeError, DriverError) as error:
        return str(error)
    return ""


def check_encodings() -> None:
    """Build the arguments of each encoding call, if the driver's bindings are installed. No GPU is needed."""
    try:
        from cuda.bindings import driver  # noqa: PLC0415 -- an optional package
    except ImportError:
        return
    for condition in CONDITIONS:
        if condition.request:
            list_encoding(driver, make_fields(condition.request))


def run_on_device(conditions: Sequence[Condition], cubin: bytes, channel: Connection) -> None:
    """Launch or encode each condition on the GPU; send its outcome and the arrays after it through ``channel``."""
    from cuda.bindings import driver  # noqa: PLC0415 -- an optional package

    for condition in conditions:
        outcome, arrays = RUNS, []
        try:
            device, arguments = RequestingDevice(driver), make_arguments(condition)
            if condition.kernel:
                device.run(cubin, condition.kernel, (1, 1, 1), (32, 1, 1), arguments)
                arrays = [arguments[1], arguments[0].array if condition.request else arguments[0]]
            else:
                device.encode_for_memory(condition)
        except DriverError as error:
            outcome = str(error)
        except Exception as error:  # noqa: BLE001 -- a wrong call of the bindings is an outcome, too
            outcome = f"{type(error).__name__}: {error}"
        if outcome == RUNS and condition.kernel.startswith(LOADS) and not arrays[0][WORDS]:
            outcome = "not all bytes came"
        channel.send((outcome, arrays))


def iter_outcomes(conditions: Sequence[Condition], cubin: bytes) -> Iterator[tuple[str, list[Any]]]:
    """Run conditions in a new process; yield the outcome of each, and the arrays after it."""
    context = multiprocessing.get_context("forkserver")  # its processes start without CUDA, whatever this one did
    context.set_forkserver_preload(["experiments.conditions"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_on_device, args=(conditions, cubin, sender))
    process.start()
    sender.close()
    for _ in conditions:
        try:
            yield receiver.recv() if receiver.poll(LIMIT) else ("no end", [])
        except EOFError:
            yield "the process ended", []
    process.join(1)
    if process.is_alive():
        process.kill()
        process.join()


def compare_arrays(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """Return "equal" or the number of different bytes, as a text; empty unless both launches ran."""
    if not ours or not theirs:
        return ""
    count = sum(int((a != b).sum()) for a, b in zip(list_bytes(ours), list_bytes(theirs), strict=True))
    return f"{count} bytes differ" if count else "equal"


def main(words: Sequence[str] | None = None) -> int:
    """Run all conditions, or with ``--check`` only count them; return the exit code: 2 without a GPU, else 0."""
    parser = argparse.ArgumentParser("python -m experiments.conditions", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder for conditions.json and conditions.npz")
    parser.add_argument("--check", action="store_true", help="compile, bind and count, without a GPU")
    parser.add_argument("--seconds", type=float, default=240.0, help="start no launch after this time (%(default)s)")
    options = parser.parse_args(words)
    problem = "" if options.check else find_device_problem()
    if problem:
        print(f"no GPU can be used: {problem}; --check needs none", file=sys.stderr)
        return 2
    ptx = cuda_compiler.compile_source(SOURCE, "", ARCH).ptx
    cubin = cubins.compile_cubin(SOURCE, ARCH)
    options.folder.mkdir(parents=True, exist_ok=True)
    check_encodings()
    started = time.monotonic()
    rows: list[dict[str, str]] = []
    saved: dict[str, Any] = {}
    encodings = [condition for condition in CONDITIONS if not condition.kernel]
    batches = [[condition] for condition in CONDITIONS if condition.kernel]
    for batch in [encodings, *batches]:
        late = options.check or time.monotonic() - started > options.seconds
        outcomes = [("not run", [])] * len(batch) if late else iter_outcomes(batch, cubin)
        for condition, (outcome, arrays) in zip(batch, outcomes, strict=True):
            saved |= {f"{len(rows)}-{place}": array for place, array in enumerate(arrays)}
            verdict, ours = count_launch(condition, ptx)
            row = {"group": condition.group, "name": condition.name, "guess": condition.expectation, "chip": outcome}
            data = {"data": compare_arrays(ours, arrays), "digest": digest_arrays(arrays) if outcome == RUNS else ""}
            rows.append({**row, "ptxcount": verdict, **data})
    (options.folder / "conditions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    np.savez_compressed(options.folder / "conditions.npz", **saved)
    shown = [{**row, "ptxcount": row["ptxcount"][:70]} for row in rows]
    print(tabulate(shown, "keys", "github", disable_numparse=True))
    ran = [row for row in rows if row["chip"] != "not run"]
    wrong = sum(row["chip"] != row["guess"] for row in ran)
    apart = sum((row["chip"] == RUNS) != (row["ptxcount"] == RUNS) for row in ran)
    different = sum("differ" in row["data"] for row in ran)
    print(
        f"\n{len(ran)} of {len(rows)} ran in {time.monotonic() - started:.0f} s. {wrong} differ from the guess; "
        f"{apart} run only on the chip or only in ptxcount; {different} have different bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

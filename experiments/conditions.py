"""Conditions of bulk copies and tensor maps on a GPU, beside ptxcount's verdict on the same launches.

`python -m experiments.conditions FOLDER` runs each launch of `condition_cases` in a process of its own, as a fault
ends its context; calls that only encode share one. It prints a table, and writes conditions.json and conditions.npz
(the bytes that came) into the folder. `--check` compiles, binds and counts them without a GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from experiments.condition_cases import CONDITIONS, RUNS, Condition, MapRequest
from ptxcount import Im2colMap, TensorMap
from ptxcount.engine.execute import execute_kernel
from ptxcount.isa.hopper.map_fields import Column, MapFields
from ptxcount.source import nvcc
from ptxcount.util.errors import PtxError
from tests.gpu.driver import Device, list_encoding

SOURCE = Path(__file__).with_suffix(".cu")
ARCH = "sm_90a"
#: Words of a tile, and the place of the word that is 1 if all bytes have come.
WORDS = 4096
#: Seconds that a process may take.
LIMIT = 20.0
#: Beginnings of the names of kernels that wait for bytes.
LOADS = ("load", "im2col", "bulk_load", "replace")


@dataclass(frozen=True, eq=False)
class RequestedMap(TensorMap):
    """An array with the parameters of its tensor map, which the driver may refuse."""

    request: MapRequest = field(default_factory=MapRequest)

    def __post_init__(self) -> None:
        """Refuse nothing."""

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map, right or wrong."""
        return make_fields(self.request, address)


class DriverError(Exception):
    """A refusal of the driver; `str` is its name without prefix, in small letters, after "encoding: " if it is one."""


class RequestingDevice(Device):
    """A device that encodes requested tensor maps."""

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *results = getattr(self.cu, name)(*arguments)
        if int(error):
            text = self.cu.CUresult(int(error)).name.removeprefix("CUDA_ERROR_").lower().replace("_", " ")
            raise DriverError(f"encoding: {text}" if "Encode" in name else text)
        return results[0] if len(results) == 1 else results


def make_fields(request: MapRequest, address: int = 0) -> MapFields:
    """Return the fields of a requested map, right or wrong; its offset is added to the address."""
    dtype = np.dtype(request.dtype)
    extents = request.shape[::-1] if request.extents is None else request.extents
    pitches = [dtype.itemsize * int(np.prod(extents[:axis], dtype=object)) for axis in range(1, len(extents))]
    pitches = pitches if request.pitches is None else [*request.pitches]
    steps = request.steps or (1,) * len(extents)
    column = Column(*request.corners, request.channels, request.pixels) if request.corners is not None else None
    box, modes = request.box, (request.swizzle, request.interleave, bool(request.fill))
    return MapFields(address + request.offset, dtype, extents, (*pitches,), box, steps, *modes, column)


def check_encodings() -> None:
    """Make the arguments of each call that encodes, as the driver's bindings want them."""
    from cuda.bindings import driver  # noqa: PLC0415 -- an optional package

    for condition in CONDITIONS:
        if condition.request:
            list_encoding(driver, make_fields(condition.request))


def make_arguments(condition: Condition) -> list[Any]:
    """Return the arguments of a launch; the words of an array differ, and none is 0."""
    request = condition.request or MapRequest()
    count = int(np.prod(request.shape))
    array = (np.arange(count) + 1).astype(request.dtype).reshape(request.shape)
    first = RequestedMap(array, request=request) if condition.request else array
    arguments = [first, np.zeros(WORDS + 34, np.uint32), np.array(condition.numbers, np.int32)]
    if condition.kernel == "replace_2d":
        arguments += [(np.arange(count + 64) + 100001).astype(request.dtype), np.zeros(16, np.uint64)]
    return arguments


def run_on_device(conditions: Sequence[Condition], cubin: bytes, channel: Connection) -> None:
    """Launch or encode on the device, and send each outcome, and what the arrays then hold."""
    from cuda.bindings import driver  # noqa: PLC0415 -- an optional package

    for condition in conditions:
        outcome, arrays = RUNS, []
        try:
            device, arguments = RequestingDevice(driver), make_arguments(condition)
            if condition.kernel:
                device.run(cubin, condition.kernel, (1, 1, 1), (32, 1, 1), arguments)
                arrays = [arguments[1], arguments[0].array if condition.request else arguments[0]]
            elif condition.request:
                device.encode_map(make_fields(condition.request, int(device._call("cuMemAlloc", 1 << 20))))
        except DriverError as error:
            outcome = str(error)
        except Exception as error:  # noqa: BLE001 -- a wrong call of the bindings is an outcome, too
            outcome = f"{type(error).__name__}: {error}"
        if outcome == RUNS and condition.kernel.startswith(LOADS) and not arrays[0][WORDS]:
            outcome = "not all bytes came"
        channel.send((outcome, arrays))


def iter_outcomes(conditions: Sequence[Condition], cubin: bytes) -> Iterator[tuple[str, list[Any]]]:
    """Yield the outcome of each condition, and its arrays, from one process of its own."""
    context = multiprocessing.get_context("forkserver")  # its processes begin without CUDA, whatever this one did
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


def count_launch(condition: Condition, ptx: str) -> tuple[str, list[Any]]:
    """Return ptxcount's verdict on a launch, and its arrays; the driver's part is that of `TensorMap`."""
    try:
        if not condition.kernel and condition.request:
            return make_fields(condition.request).find_problem() or RUNS, []
        arguments = make_arguments(condition)
        if condition.request:
            arguments[0] = describe_map(arguments[0].array, condition.request)
        if condition.kernel:
            grid, block = (1, 1, 1), (32, 1, 1)
            execute_kernel(ptx, condition.kernel, grid, block, arguments, unwritten="off", time_limit=LIMIT)
        first = arguments[0].array if condition.request else arguments[0]
    except PtxError as error:
        return f"{type(error).__name__}: {error}", []
    return RUNS, [arguments[1], first]


def describe_map(array: Any, request: MapRequest) -> TensorMap | Im2colMap:
    """Return ptxcount's description of the tensor map of a launch."""
    options: dict[str, Any] = {
        "swizzle": request.swizzle,
        "steps": request.steps[::-1],
        "fills_nan": bool(request.fill),
    }
    if request.corners is None:
        return TensorMap(array, request.box[::-1], **options)
    lower, upper = (corner[::-1] for corner in request.corners)
    return Im2colMap(array, lower, upper, request.channels, request.pixels, **options)


def list_bytes(arrays: Sequence[Any]) -> list[Any]:
    """Return the bytes of the tile, with the word behind it, and of the array; then lies the replaced map."""
    tile, array = (array.view(np.uint8).ravel() for array in arrays)
    return [tile[: 4 * WORDS + 4], array]


def digest_arrays(arrays: Sequence[Any]) -> str:
    """Return some digits of a hash of the bytes that came; nothing if there are none."""
    return hashlib.sha256(b"".join(part.tobytes() for part in list_bytes(arrays))).hexdigest()[:12] if arrays else ""


def compare_arrays(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """Return "equal", or the number of different bytes; nothing if only one side ran."""
    if not ours or not theirs:
        return ""
    count = sum(int((a != b).sum()) for a, b in zip(list_bytes(ours), list_bytes(theirs), strict=True))
    return f"{count} bytes differ" if count else "equal"


def compile_cubin() -> bytes:
    """Return machine code of the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "conditions.cubin")
        subprocess.run([str(nvcc.find_nvcc()), "--cubin", "-arch", ARCH, str(SOURCE), "-o", str(output)], check=True)
        return output.read_bytes()


def main(words: Sequence[str] | None = None) -> int:
    """Run all conditions, or count them; return 2 if there is no GPU."""
    parser = argparse.ArgumentParser("python -m experiments.conditions", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder for conditions.json and conditions.npz")
    parser.add_argument("--check", action="store_true", help="compile, bind and count, without a GPU")
    parser.add_argument("--seconds", type=float, default=240.0, help="begin no launch after so long")
    options = parser.parse_args(words)
    ptx = nvcc.compile_source(SOURCE, "", ARCH).ptx
    cubin = compile_cubin()
    options.folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("cuda"):
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
    print(f"\n{len(ran)} of {len(rows)} ran in {time.monotonic() - started:.0f} s; {wrong} not as guessed, ", end="")
    print(
        f"{apart} where only one of chip and ptxcount runs, {sum('differ' in row['data'] for row in ran)} other bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

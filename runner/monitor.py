"""A process beside each run of the suite: it reads the GPU's clocks for all others, and keeps the driver awake.

`python -m runner.monitor SOCKET` prints a line of facts once it listens, and ends when its standard input does. While
it lives, the driver stays initialised: on an H200 `cuInit` takes 8 ms instead of 95 in every process of the suite, and
its end 22 ms instead of 71 (docs/measurements.md). It makes no context and launches nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.instruments import clocks, machine

#: CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE (CUDA Driver API, "CUdevice_attribute").
_L2_CACHE_SIZE = 38

#: Seconds that it may take to begin, and to end.
PATIENCE = 20.0


def _l2_bytes() -> int | None:
    """Initialise the driver; the size of the first device's L2 cache, None if there is no device."""
    driver = ctypes.CDLL("libcuda.so.1")
    device, size = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return None
    return None if driver.cuDeviceGetAttribute(ctypes.byref(size), _L2_CACHE_SIZE, device) else size.value


class Server(socketserver.UnixStreamServer):
    """Answers each connection with why the GPU is held back at that moment, as JSON.

    Parameters
    ----------
    address : path of the Unix socket.
    watch : the GPU's clocks.
    """

    def __init__(self, address: str, watch: clocks.Watch) -> None:
        self.watch = watch
        super().__init__(address, _Answer)


class _Answer(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        self.wfile.write(json.dumps(self.server.watch.held_back()).encode())


def serve(address: str) -> None:
    """Answer until standard input ends."""
    handle = machine.nvml()
    others = clocks.processes(handle)
    facts = {"l2_bytes": _l2_bytes(), "others_on_gpu": others}
    counted = clocks.processes(handle) - others  # whether NVML counts this one, which has no context
    with Server(address, clocks.Watch(handle, expected=1 + counted)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(json.dumps(facts), flush=True)
        sys.stdin.read()
        server.shutdown()


@contextmanager
def running() -> Iterator[dict[str, Any]]:
    """Run a monitor, and let the processes started meanwhile find it; yields its facts, none without a GPU.

    They also get one queue to the GPU instead of eight: a context is then made in half the time.
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    if machine.nvml() is None:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "monitor")
        command = [sys.executable, "-m", "runner.monitor", address]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
            start_new_session=True,  # a Ctrl-C is for the run, which ends it
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            line = process.stdout.readline() if ready else ""
            if line:  # else it failed, and said why on standard error: the others start NVML themselves
                os.environ[clocks.ADDRESS] = address
            try:
                yield json.loads(line) if line else {}
            finally:
                os.environ.pop(clocks.ADDRESS, None)
                process.stdin.close()
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:  # the driver does not answer: the run is over all the same
                    process.kill()


if __name__ == "__main__":
    serve(sys.argv[1])

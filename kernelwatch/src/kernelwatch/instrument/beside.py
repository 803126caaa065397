"""A measuring process for a run of asv without the plugin: begun by `setup_cache`, it ends with asv's process.

`python -m kernelwatch.instrument.beside FOLDER PROCESS` runs one, leaves its address in the folder, and waits for the
end of the process, by whatever means.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelwatch import project
from kernelwatch.instrument import exchange, machine, measuring

#: What to do, and what it brings.
MISSING = (
    'write "plugins": [".kernelwatch.asv.plugin", ".kernelwatch.show.site.publisher"] into asv.conf.json: times then '
    "take less long, unchanged numbers are reused, the machine is named after its GPU, and the site has all pages"
)

#: The file that holds the socket's path, and the one that shows that it has been told what is missing.
_ADDRESS, _TOLD = "measuring", "told"

#: What was begun here: nobody waits for it.
_begun: list[subprocess.Popen[bytes]] = []


def begin(folder: Path, process: int) -> None:
    """Begin one that ends with a process, on a machine that has a GPU; wait until it is there."""
    if machine.nvml() is None:
        return
    with (folder / "measuring.log").open("w") as log:  # asv waits for the end of all that has its pipes
        words = [sys.executable, "-m", "kernelwatch.instrument.beside", str(folder), str(process)]
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        _begun.append(subprocess.Popen(words, **streams, cwd=project.ROOT, start_new_session=True))
    until = time.monotonic() + exchange.BEGIN
    while not (folder / _ADDRESS).exists() and time.monotonic() < until:
        time.sleep(0.01)


def find(folder: Path) -> None:
    """Let this process ask the one that was begun for a folder, if there is one; say once what is missing."""
    if exchange.ADDRESS in os.environ:
        return
    if (folder / _ADDRESS).exists():
        os.environ[exchange.ADDRESS] = (folder / _ADDRESS).read_text(encoding="utf-8")
    if project.LIBRARIES in os.environ:  # the plugin is there, and has said what of it is switched off
        return
    with suppress(FileExistsError):
        (folder / _TOLD).touch(exist_ok=False)
        print(f"kernelwatch runs without its plugin; {MISSING}", file=sys.stderr)


def main() -> None:
    """Run one until the process has ended."""
    folder, process = Path(sys.argv[1]), int(sys.argv[2])
    with measuring.running():
        (folder / "unfinished").write_text(os.environ[exchange.ADDRESS], encoding="utf-8")
        (folder / "unfinished").replace(folder / _ADDRESS)
        with suppress(ProcessLookupError):
            select.select([os.pidfd_open(process)], [], [])


if __name__ == "__main__":
    main()

"""Count the launches of a program, and compare them with a GPU's.

`python -m experiments.recorder record PROGRAM.py FOLDER` runs a program twice on a GPU: under `recorder.c`, and under
Nsight Compute, whose metrics go to the folder. `python -m experiments.recorder compare FOLDER` counts each launch
whose PTX is there, needs no GPU, and prints the launches that differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from experiments.recorder import comparison, profiler


def _find_cupti(toolkit: Path) -> tuple[Path, Path]:
    """Return CUPTI's header folder and library: of the CUDA toolkit, or of NVIDIA's package for Python."""
    places = [toolkit / "extras" / "CUPTI", *(Path(place, "cu13") for place in import_module("nvidia").__path__)]
    for place in places:
        for library in (*place.glob("lib64/libcupti.so.*"), *place.glob("lib/libcupti.so.*")):
            if (place / "include" / "cupti.h").exists():
                return place / "include", library
    raise SystemExit("there is no CUPTI; run: pip install nvidia-cuda-cupti")


def _build_recorder(folder: Path) -> Path:
    """Compile the recorder with the CUDA toolkit of the machine."""
    toolkit, library = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), folder / "recorder.so"
    include, cupti = _find_cupti(toolkit)
    source = str(Path(__file__).with_name("recorder.c"))
    options = [f"-I{include}", f"-I{toolkit}/include", str(cupti), f"-L{toolkit}/lib64/stubs", "-lcuda"]
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), source, *options, f"-Wl,-rpath,{cupti.parent}"]
    subprocess.run(command, check=True)
    return library


def _record(program: Path, folder: Path) -> None:
    if (folder / "launches").exists():
        raise SystemExit(f"{folder} already holds a recording; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    library = _build_recorder(folder)
    environment = os.environ | {"RECORD_FOLDER": str(folder.resolve())}
    command = [sys.executable, str(program)]
    subprocess.run(command, env=environment | {"CUDA_INJECTION64_PATH": str(library.resolve())}, check=True)
    (folder / "nsight.csv").write_text(profiler.profile_program(command, environment))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.recorder", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("program", type=Path)
    record.add_argument("folder", type=Path)
    compare = commands.add_parser("compare")
    compare.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        _record(given.program, given.folder)
    else:
        if not (given.folder / "launches").exists():
            parser.error(
                f"{given.folder} holds no recording; run: python -m experiments.recorder record PROGRAM.py FOLDER"
            )
        print(comparison.compare_recording(given.folder))


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# Guess: carbontracker adds up the energy of all GPUs that it lists: 8 GPUs of 300 W for an hour are 2.4 kWh.
# What happens: 0.3 kWh. The readings of all GPUs are put into one flat list, and its mean is multiplied by the time: the
# energy of the average GPU. A busy GPU and an idle one, 700 W and 100 W, are 0.4 kWh, half of what they take. Of one GPU
# the energy is right.
# Version: carbontracker 2.4.7, which asks a stand-in for GPUs with known power. Seen on 1 December 2026.
# Why it matters: energy and CO2 of a node of 8 GPUs are an eighth, in each epoch, in total and in predictions. The log
# lists all 8, and nothing is warned of. Run on one GPU, the same script has the right number.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check carbontracker==2.4.7 nvidia-ml-py==13.615.71

cat >"$work/energy.py" <<'PYTHON'
from importlib import metadata
from unittest import mock

import pynvml
from carbontracker.components.component import Component
from carbontracker.loggerutil import Logger

EPOCH = 3600  # seconds


def print_energy(label, watts):
    """Print the energy of two epochs of an hour each by carbontracker, and the sum of power times time."""
    stand_in = {
        "nvmlInit": lambda: None, "nvmlShutdown": lambda: None, "nvmlDeviceGetCount": lambda: len(watts),
        "nvmlDeviceGetHandleByIndex": lambda index: index, "nvmlDeviceGetName": lambda handle: f"GPU {handle}",
        "nvmlDeviceGetPowerUsage": lambda handle: 1000 * watts[handle],  # in mW
    }
    with mock.patch.multiple(pynvml, **stand_in):
        gpus = Component("gpu", [], False, Logger())
        gpus.init()
        names = gpus.devices()
        for epoch in (1, 2):
            for _ in range(60):
                gpus.collect_power_usage(epoch)
        energies = gpus.energy_usage([EPOCH, EPOCH])
        gpus.shutdown()
    right = sum(watts) * EPOCH / 3.6e6
    print(f"{label}: {len(names)} listed, {[round(float(energy), 3) for energy in energies]} kWh, right {right:.3f} kWh an epoch")


print("carbontracker", metadata.version("carbontracker"))
print_energy("one of 300 W", [300])
print_energy("8 of 300 W", [300] * 8)
print_energy("700 W and 100 W", [700, 100])
PYTHON
"$work/venv/bin/python" "$work/energy.py" 2>/dev/null | tee "$work/seen"

expected='carbontracker 2.4.7
one of 300 W: 1 listed, [0.3, 0.3] kWh, right 0.300 kWh an epoch
8 of 300 W: 8 listed, [0.3, 0.3] kWh, right 2.400 kWh an epoch
700 W and 100 W: 2 listed, [0.4, 0.4] kWh, right 0.800 kWh an epoch'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }

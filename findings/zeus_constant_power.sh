#!/usr/bin/env bash
# Guess, written after the first sign: PowerMonitor.get_energy() of Zeus integrates the power that it polls: 300 W for
# ten seconds are 3000 J.
# What happens: 0 J. A reading that equals the one before is not stored, and the trapezoids span what is left. Constant
# power leaves one reading, or none in the window. 300 W for 8 of ten seconds, and 60 W before and after, are 1620 J where
# 2520 are right: each change becomes a ramp, as long as the power before it.
# Version: zeus 0.16.0, which asks a stand-in for a GPU with known power, by a stand-in for the clock. Seen on
# 1 December 2026.
# Why it matters: ZeusMonitor takes this energy for GPUs without a counter of energy, all before Volta. Readings repeat
# while power is steady, as at a cap or when idle. The number is finite and no warning is given.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check zeus==0.16.0 nvidia-ml-py==13.615.71 \
  scikit-learn==1.9.1 numpy==2.4.6

cat >"$work/integrate.py" <<'PYTHON'
import queue
from importlib import metadata
from types import SimpleNamespace

from zeus.monitor import power

PERIOD = 0.1


def integrate(label, watts):
    """Print the energy of ten seconds by Zeus, and the sum of power times period."""
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds):
        clock.now += seconds

    def ask_power(index):
        return int(1000 * watts(clock.now))  # in mW

    def make_event():
        return SimpleNamespace(is_set=lambda: clock.now > 10.0 + PERIOD / 2, wait=lambda timeout: True, set=lambda: None)

    def make_process(target, kwargs, **options):  # It polls at once, in this process.
        return SimpleNamespace(start=lambda: target(**kwargs), is_alive=lambda: False)

    gpus = SimpleNamespace(
        get_instant_power_usage=ask_power, get_average_power_usage=ask_power, get_average_memory_power_usage=ask_power
    )
    context = SimpleNamespace(Queue=queue.Queue, Event=make_event, Process=make_process)
    power.time, power.sleep, power.get_gpus = lambda: clock.now, sleep, lambda ensure_homogeneous: gpus
    power.mp = SimpleNamespace(get_context=lambda method: context)
    monitor = power.PowerMonitor(gpu_indices=[0], update_period=PERIOD, power_domains=["device_instant"])
    right = sum(watts(step * PERIOD + PERIOD / 2) * PERIOD for step in range(100))
    readings = len(monitor.get_power_timeline("device_instant")[0])
    print(f"{label}: {monitor.get_energy(0.0, 10.0)[0]:.0f} J of {readings} readings, right {right:.0f} J")


print("zeus", metadata.version("zeus"))
integrate("300 W", lambda seconds: 300)
integrate("300 W for 8 s between 60 W", lambda seconds: 300 if 0.95 < seconds < 8.95 else 60)
integrate("60 W, and 300 W from 9 s on", lambda seconds: 300 if seconds > 8.95 else 60)
integrate("300 and 301 W in turns", lambda seconds: 300 + round(seconds / PERIOD) % 2)
PYTHON
"$work/venv/bin/python" "$work/integrate.py" 2>/dev/null | tee "$work/seen"

expected='zeus 0.16.0
300 W: 0 J of 1 readings, right 3000 J
300 W for 8 s between 60 W: 1620 J of 3 readings, right 2520 J
60 W, and 300 W from 9 s on: 1620 J of 2 readings, right 864 J
300 and 301 W in turns: 3005 J of 101 readings, right 3001 J'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }

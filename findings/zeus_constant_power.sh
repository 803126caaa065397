#!/usr/bin/env bash
# Guess: PowerMonitor.get_energy() of Zeus integrates the power that it polls: 300 W for ten seconds are 3000 J.
# What happens: 0 J. A reading that equals the one before is not stored, and the trapezoids span what is left. Constant
# power leaves one reading, or none in the window. 300 W for 8 of ten seconds,
# and 60 W before and after, are 1620 J where 2520 are right: each change becomes a ramp, as long as the power before it.
# Version: zeus 0.16.0, which asks a stand-in for a GPU with known power, by a stand-in for the clock. Seen on
# 1 December 2026.
# Why it matters: ZeusMonitor takes this energy for GPUs without a counter of energy, all before Volta. Power that is
# capped or read with few digits repeats most. The number is finite and no warning is given.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" zeus==0.16.0 nvidia-ml-py==13.615.71 scikit-learn==1.9.1 numpy==2.4.6
export PYTHONPATH="$work/packages"

cat >"$work/integrate.py" <<'PYTHON'
import queue
from importlib import metadata
from types import SimpleNamespace

from zeus.monitor import power

PERIOD = 0.1


class Clock:
    """Count the seconds of one run, ten of them, without waiting."""

    now = 0.0

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Event:
    """Tell that polling is ready, and that it stops after ten seconds."""

    def is_set(self):
        return clock.now > 10.0 + PERIOD / 2

    def wait(self, timeout):
        return True

    def set(self):
        pass


class Process:
    """Poll at once, in this process."""

    def __init__(self, target, kwargs, **options):
        self.poll = lambda: target(**kwargs)

    def start(self):
        self.poll()

    def is_alive(self):
        return False


class Gpus(list):
    """One GPU whose power, in mW, is known at each time."""

    def get_instant_power_usage(self, index):
        return int(1000 * watts(clock.now))


def integrate(label, function):
    """Print what Zeus integrates, and the sum of power times period."""
    global clock, watts
    clock, watts = Clock(), function
    gpus = Gpus(["GPU"])
    gpus.get_average_power_usage = gpus.get_average_memory_power_usage = gpus.get_instant_power_usage
    power.time, power.sleep, power.get_gpus = clock.time, clock.sleep, lambda ensure_homogeneous: gpus
    power.mp = SimpleNamespace(get_context=lambda method: SimpleNamespace(Queue=queue.Queue, Event=Event, Process=Process))
    monitor = power.PowerMonitor(update_period=PERIOD, power_domains=["device_instant"])
    right = sum(watts(step * PERIOD + PERIOD / 2) * PERIOD for step in range(100))
    readings = len(monitor.get_power_timeline("device_instant")[0])
    print(f"{label}: {monitor.get_energy(0.0, 10.0)[0]:.0f} J of {readings} readings, right {right:.0f} J")


print("zeus", metadata.version("zeus"))
integrate("300 W", lambda seconds: 300)
integrate("300 W for 8 s between 60 W", lambda seconds: 300 if 0.95 < seconds < 8.95 else 60)
integrate("60 W, and 300 W from 9 s on", lambda seconds: 300 if seconds > 8.95 else 60)
integrate("300 and 301 W in turns", lambda seconds: 300 + round(seconds / PERIOD) % 2)
PYTHON
python3 "$work/integrate.py" 2>/dev/null | tee "$work/seen"

expected='zeus 0.16.0
300 W: 0 J of 1 readings, right 3000 J
300 W for 8 s between 60 W: 1620 J of 3 readings, right 2520 J
60 W, and 300 W from 9 s on: 1620 J of 2 readings, right 864 J
300 and 301 W in turns: 3005 J of 101 readings, right 3001 J'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }

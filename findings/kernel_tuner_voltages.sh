#!/usr/bin/env bash
# Guess, written after the first sign: NVMLObserver(["gr_voltage"]) of Kernel Tuner returns the mean of its readings of
# the GPU's voltage, in mV.
# What happens: it returns the mean of two members of the first reading: the seconds since the start and the voltage. So
# a constant 800 mV is 400, and of readings of 700, 900 and 900 mV the result is 350. The other readings change nothing.
# Version: kernel_tuner 1.5.0, whose class nvml, which asks the driver, is replaced by one with known readings. Seen on
# 30 November 2026.
# Why it matters: in models of power the voltage counts squared. The number is finite and
# follows the first reading, so nothing looks wrong. core_freq is the mean of its readings.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" kernel_tuner==1.5.0 numpy==2.2.0 python-constraint2==2.9.0 pymoo==0.6.2
export PYTHONPATH="$work/packages"

cat >"$work/observe.py" <<'PYTHON'
from importlib import metadata

from kernel_tuner.observers import nvml


class Gpu:
    """A GPU with known readings, for kernel_tuner's class of the same methods."""

    def __init__(self, voltages):
        self.voltages = iter(voltages)
        self.clocks = iter(range(1500, 2000, 100))

    def gr_voltage(self):
        return next(self.voltages)

    @property
    def gr_clock(self):
        return next(self.clocks)


def observe(voltages):
    nvml.nvml = lambda **options: Gpu(voltages)
    observer = nvml.NVMLObserver(["gr_voltage", "core_freq"], device=0)
    observer.register_device(None)
    observer.before_start()
    observer.after_start()  # the first reading
    for _ in voltages[1:]:
        observer.during()
    observer.after_finish()
    results = observer.get_results()
    print(f"voltages {voltages}: gr_voltage {results['gr_voltage']:.1f}, core_freq {results['core_freq']:.0f}")


print("kernel_tuner", metadata.version("kernel_tuner"))
observe([800.0, 800.0, 800.0])
observe([700.0, 900.0, 900.0])
observe([900.0, 700.0, 700.0])
observe([700.0, 700.0, 900.0])
PYTHON
python3 "$work/observe.py" 2>/dev/null | tee "$work/seen"

expected='kernel_tuner 1.5.0
voltages [800.0, 800.0, 800.0]: gr_voltage 400.0, core_freq 1600
voltages [700.0, 900.0, 900.0]: gr_voltage 350.0, core_freq 1600
voltages [900.0, 700.0, 700.0]: gr_voltage 450.0, core_freq 1600
voltages [700.0, 700.0, 900.0]: gr_voltage 350.0, core_freq 1600'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }

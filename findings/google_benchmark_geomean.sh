#!/usr/bin/env bash
# Guess: compare.py of Google Benchmark, which matches two runs by name, compares the geometric means of the benchmarks
# that it lists. A benchmark whose unit changed is converted, or named.
# What happens: OVERALL_GEOMEAN is that of all benchmarks in each file. If the new run has one more, of a large size, the
# mean is 4.8 times as long (+3.7548), though no listed benchmark changed. If that one was removed, and all others became
# slower by 20 %, the mean is shorter by 75 %. A benchmark that became 40 times slower is left out silently, since its
# unit went from us to ms. Its times count in the mean.
# Version: compare.py of Debian 12's libbenchmark-tools 1.7.1-1, SciPy 1.15.3. Google Benchmark's newest sources compute
# the mean alike. Seen on 30 November 2026.
# Why it matters: suites of kernels compare themselves by this line, with times of CUDA events by UseManualTime(). Adding
# a size makes a commit slower, and removing one hides a regression.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages numpy==2.3.5 scipy==1.15.3
apt-get -qq -o APT::Sandbox::User=root download libbenchmark-tools=1.7.1-1
dpkg -x libbenchmark-tools*.deb .
dpkg-deb -W libbenchmark-tools*.deb

cat >compare.py <<'PYTHON'
import json
import subprocess
import sys

def write_run(path, times):
    """Write a run: names, and times with units."""
    benchmarks = [{"name": f"{name}/manual_time", "run_name": f"{name}/manual_time", "run_type": "iteration", "iterations": 100,
                   "real_time": time, "cpu_time": time, "time_unit": unit} for name, (time, unit) in times.items()]
    with open(path, "w") as file:
        json.dump({"context": {}, "benchmarks": benchmarks}, file)

def compare(title, base, head):
    write_run("base.json", base)
    write_run("head.json", head)
    command = [sys.executable, "usr/share/benchmark/compare.py", "--no-color", "benchmarks", "base.json", "head.json"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(f"{title}: exit code {result.returncode}")
    for line in result.stdout.splitlines()[3:]:
        print("  " + " ".join(line.split()[:2]))

copies = {"copy/1MB": (2.0, "us"), "copy/4MB": (8.0, "us")}
large = {"copy/1GB": (430.0, "us")}
compare("one added", copies, copies | large)
slower = {name: (1.2 * time, unit) for name, (time, unit) in copies.items()}
compare("two slower, one removed", copies | large, slower)
compare("one in ms", copies | large, copies | {"copy/1GB": (17.2, "ms")})
PYTHON
PYTHONPATH=packages python3 compare.py | tee seen

expected='one added: exit code 0
  copy/1MB/manual_time +0.0000
  copy/4MB/manual_time +0.0000
  OVERALL_GEOMEAN +3.7548
two slower, one removed: exit code 0
  copy/1MB/manual_time +0.2000
  copy/4MB/manual_time +0.2000
  OVERALL_GEOMEAN -0.7476
one in ms: exit code 0
  copy/1MB/manual_time +0.0000
  copy/4MB/manual_time +0.0000
  OVERALL_GEOMEAN +2.4200'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }

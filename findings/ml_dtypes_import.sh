#!/usr/bin/env bash
# Guess: none. It was found because each command of a program took 0.6 s longer on a new machine than on an old one.
# What happens: `import ml_dtypes` takes 0.5 to 0.7 s of CPU time in version 0.7.0, and 0.01 s in 0.6.0. NumPy itself
# takes 0.1 s. Version 0.7.0 has one more type, and registers 37,700 promoters (PyUFunc_AddPromoter, counted by a
# debugger), rules for mixed types, where 0.6.0 registers none. NumPy compares each with all that the function has.
# Version: ml_dtypes 0.7.0 and 0.6.0, NumPy 2.2.6, CPython 3.10 or newer, x86-64.
# Why it matters: whoever needs the name bfloat16 imports ml_dtypes, as JAX does. A benchmark suite that starts a
# process for each benchmark pays for it each time, and a command-line tool at each start.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/numpy" numpy==2.2.6
for version in 0.6.0 0.7.0; do
  python3 -m pip install -qq --no-deps --target "$work/$version" "ml_dtypes==$version"
done

# import_time VERSION: the least CPU seconds of five imports, and the number of types
import_time() {
  for _ in 1 2 3 4 5; do
    PYTHONPATH="$work/numpy:$work/$1" python3 -c '
import time
import numpy
start = time.process_time()
import ml_dtypes
print(f"{time.process_time() - start:.4f}", sum(isinstance(value, type) for value in vars(ml_dtypes).values()) - 2)'
  done | sort -n | head -1
}

read -r old_seconds old_types < <(import_time 0.6.0)
read -r new_seconds new_types < <(import_time 0.7.0)
echo "ml_dtypes 0.6.0: $old_types types, $old_seconds s; 0.7.0: $new_types types, $new_seconds s"
[ "$old_types $new_types" = "20 21" ] && awk "BEGIN { exit !($new_seconds > 15 * $old_seconds) }" || {
  echo 'the behaviour changed' >&2
  exit 1
}

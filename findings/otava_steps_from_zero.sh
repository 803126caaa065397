#!/usr/bin/env bash
# Guess, written after the first sign: a metric with `direction: -1` that goes from 0 to 64 and stays there is a
# regression in the report that `otava analyze --output regressions_only` prints. It is the worst kind: any limit of
# relative change is exceeded.
# What happens: Otava finds the step, and takes its relative change for 0. The log prints "+0.0%" and JSON a
# forward_change_percent of 0. The report of regressions leaves it out, beside a step of 10 % that it lists, or says "No
# regressions found". From 64 to 0 the change is -100 %.
# Version: apache-otava 0.8.0. Seen on 30 November 2026.
# Why it matters: 0 is the best value of bank conflicts, spilled bytes and uncoalesced requests. The commit that brings
# the first of them is not reported. A step from 1 to 64 is, with +6300 %.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --target packages apache-otava==0.8.0
export PYTHONPATH="$work/packages"
echo "apache-otava $(python3 -c 'from importlib import metadata; print(metadata.version("apache-otava"))')"

python3 - >kernel.csv <<'PYTHON'
print("time,commit,conflicts,sectors")
for commit in range(40):
    conflicts, sectors = (0, 1000) if commit < 20 else (64, 1100)
    print(f"{1_700_000_000 + 86_400 * commit},c{commit},{conflicts},{sectors}")
PYTHON
for metrics in '{conflicts: {direction: -1}, sectors: {direction: -1}}' '{conflicts: {direction: -1}}'; do
  cat >otava.yaml <<YAML
tests:
  kernel:
    type: csv
    file: kernel.csv
    time_column: time
    attributes: [commit]
    metrics: $metrics
YAML
  for output in log json regressions_only; do
    python3 -m otava.main analyze kernel --config-file otava.yaml --since 2023-01-01 --output $output 2>errors >report
    case $output in
      log) grep '%' report | awk '{ $1 = $1; print "log: " $0 }' ;;
      json) grep -oE '"(metric|forward_change_percent|mean_before|mean_after)": "[^"]*"' report | tr '\n' ' ' ;;
      *) echo && awk '!/^20/ { $1 = $1; print "regressions: " $0 }' report ;;
    esac
  done
done | tee seen

expected='log: +0.0% +10.0%
"metric": "conflicts" "forward_change_percent": "0" "mean_before": "0.000000" "mean_after": "64.000000" '\
'"metric": "sectors" "forward_change_percent": "10" "mean_before": "1000.000000" "mean_after": "1100.000000" 
regressions: Regressions in kernel:
regressions: sectors : 1.00e+03 --> 1.10e+03 ( +10.0%)
log: +0.0%
"metric": "conflicts" "forward_change_percent": "0" "mean_before": "0.000000" "mean_after": "64.000000" 
regressions: No regressions found in kernel.'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }

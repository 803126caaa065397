#!/bin/sh
# Refuses every job but those of the workflows that the file `workflows` beside this script names, one a line, as
# GitHub calls them: owner/name/.github/workflows/gpu.yml@refs/heads/main. The runner calls it before each job, if its
# environment holds ACTIONS_RUNNER_HOOK_JOB_STARTED=/path/to/job_started.sh: docs/runners.md.
set -eu
allowed=$(dirname "$0")/workflows
asked=${GITHUB_WORKFLOW_REF:-}
if [ -n "$asked" ] && printf '%s\n' "$asked" | grep -Fxq -f "$allowed"; then
  exit 0
fi
echo "this runner takes no jobs of '$asked', only those that $allowed names" >&2
exit 1

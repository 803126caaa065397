#!/bin/sh
# Commits what kernelwatch.store.accept took into a checkout of the branch `results`, and pushes it: push_results.sh CHECKOUT.
set -eu
cd "$1"
git add results
if git diff --cached --quiet; then
  echo "nothing new"
  exit 0
fi
git -c user.name='github-actions[bot]' -c user.email='github-actions[bot]@users.noreply.github.com' \
  commit --quiet --message "Add results of main's new commits"
git push --quiet origin HEAD:refs/heads/results

#!/usr/bin/env bash
# What follows training: evaluates every run of the sweep in runs/<name> on held-out episodes, keeps its record in
# results/<name>.json.gz, and draws figures, tables and the report into runs/<name>/figures. What is done is skipped.
#   runners/keep_runs.sh <name>
# EPISODES is the number of held-out episodes (default: 100), PYTHON names the interpreter (default: python).
set -euo pipefail
if [ $# -eq 0 ] || [ ! -d "runs/$1" ]; then
  echo "usage: runners/keep_runs.sh NAME, where runs/NAME is the folder of a sweep" >&2
  exit 2
fi
python="${PYTHON:-python}" name="$1"
for run in "runs/$name"/*/*/*/seed*/; do
  test "$run/evaluation.json" -nt "$run/metrics.jsonl" || "$python" -m maip3o.evaluate checkpoint="$run" episodes="${EPISODES:-100}"
  "$python" -m maip3o.record "$run" out="results/$name" every=20
done
"$python" -m maip3o.plot "results/$name.json.gz" out="runs/$name/figures"
"$python" -m maip3o.report "runs/$name" out="runs/$name/figures/report.html" title="$name"

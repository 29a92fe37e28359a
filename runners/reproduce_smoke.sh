#!/usr/bin/env bash
# A few minutes through the whole path: sweep, evaluation, figures, tables, report.
# Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweep, e.g.
#   runners/reproduce_smoke.sh hydra/launcher=submitit_slurm hydra.launcher.partition=cpu
# PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
"$python" -m maip3o.train -m +experiment=smoke "$@"
for run in runs/smoke/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=4
done
"$python" -m maip3o.plot runs/smoke out=results/smoke
"$python" -m maip3o.report runs/smoke out=results/smoke/report.html title="smoke"

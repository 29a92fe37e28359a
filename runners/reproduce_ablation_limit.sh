#!/usr/bin/env bash
# The ablation of the limit d on Intersection, three seeds.
# Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweep, e.g.
#   runners/reproduce_ablation_limit.sh hydra/launcher=submitit_slurm hydra.launcher.partition=cpu
# PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
"$python" -m maip3o.train -m +experiment=ablation_limit "$@"
for run in runs/ablation_limit/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=200
done
"$python" -m maip3o.plot runs/ablation_limit out=results/ablation_limit
"$python" -m maip3o.report runs/ablation_limit out=results/ablation_limit/report.html title="ablation_limit"

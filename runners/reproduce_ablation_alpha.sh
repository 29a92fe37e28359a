#!/usr/bin/env bash
# The ablation of CELU's scale alpha on Intersection, three seeds.
# Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweep, e.g.
#   runners/reproduce_ablation_alpha.sh hydra/launcher=submitit_slurm hydra.launcher.partition=cpu
# PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
"$python" -m maip3o.train -m +experiment=ablation_alpha "$@"
for run in runs/ablation_alpha/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=200
done
"$python" -m maip3o.plot runs/ablation_alpha out=results/ablation_alpha
"$python" -m maip3o.report runs/ablation_alpha out=results/ablation_alpha/report.html title="ablation_alpha"

#!/usr/bin/env bash
# The paper's multi-agent figure: MAIP3O, MAP3O and MAPPO on Intersection and Parking Lot, three seeds.
# Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweep, e.g.
#   runners/reproduce_paper_metadrive.sh hydra/launcher=submitit_slurm hydra.launcher.partition=cpu
# PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
"$python" -m maip3o.train -m +experiment=paper_metadrive "$@"
for run in runs/paper_metadrive/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=200
done
"$python" -m maip3o.plot runs/paper_metadrive out=results/paper_metadrive
"$python" -m maip3o.report runs/paper_metadrive out=results/paper_metadrive/report.html title="paper_metadrive"

#!/usr/bin/env bash
# Ours on Intersection: a penalty that grows, limit 0.03, 3000 episodes (a million environment steps and more); 100 held-out
# episodes each. Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweep. SEEDS
# lists the seeds (0,1), PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
"$python" -m maip3o.train -m +scenario=intersection algo=maip3o_growing constraints.termination.limit=0.03 total_episodes=3000 \
  seed="${SEEDS:-0,1}" num_workers=1 evaluation.every_episodes=200 hydra.sweep.dir=runs/growing_penalty "$@"
for run in runs/growing_penalty/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=100
  "$python" -m maip3o.record "$run" out=results/growing_penalty
done

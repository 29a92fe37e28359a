#!/usr/bin/env bash
# The README's comparison: MAIP3O, MAP3O and MAPPO on Intersection, three seeds, and MAIP3O on Parking Lot, one seed;
# 100 held-out episodes each. Run it again after an interruption: what is finished is skipped. Arguments are passed on to
# the sweeps. SEEDS lists other seeds for Intersection (0,1,2,3,4), PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
one_core=(num_workers=1 torch_threads=1 evaluation.every_episodes=200 hydra.sweep.dir=runs/comparison)
"$python" -m maip3o.train -m +scenario=intersection algo=maip3o,map3o,mappo seed="${SEEDS:-0,1,2}" "${one_core[@]}" "$@"
"$python" -m maip3o.train -m +scenario=parking_lot scenario.end_rule=all algo.penalty.eta=0.3 seed=0 "${one_core[@]}" "$@"
for run in runs/comparison/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=100
  "$python" -m maip3o.record "$run" out=results/comparison
done
"$python" -m maip3o.plot results/comparison out=results/comparison/figures

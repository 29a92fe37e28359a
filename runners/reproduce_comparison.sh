#!/usr/bin/env bash
# The README's comparison: MAIP3O, MAP3O and MAPPO on Intersection, five seeds; MAIP3O and MAPPO on Parking Lot; 100 held-out
# episodes each. Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweeps.
# SEEDS and PARKING_SEEDS list the seeds of each, PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
sweep=(num_workers=1 torch_threads=1 evaluation.every_episodes=200 hydra.sweep.dir=runs/comparison)
seeds="${SEEDS:-0,1,2,3,4}" parking="${PARKING_SEEDS:-0,1,2}"
"$python" -m maip3o.train -m +scenario=intersection algo=maip3o,map3o,mappo seed="$seeds" "${sweep[@]}" "$@"
"$python" -m maip3o.train -m +scenario=parking_lot algo.penalty.eta=0.3 seed="$parking" "${sweep[@]}" "$@"
"$python" -m maip3o.train -m +scenario=parking_lot algo=mappo seed="$parking" "${sweep[@]}" "$@"
for run in runs/comparison/*/*/*/seed*/; do
  test -s "$run/evaluation.json" || "$python" -m maip3o.evaluate checkpoint="$run" episodes=100
  "$python" -m maip3o.record "$run" out=results/comparison every=20
done
"$python" -m maip3o.plot results/comparison out=results/comparison/figures

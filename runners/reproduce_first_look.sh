#!/usr/bin/env bash
# The README's first look: MAIP3O and MAPPO on Intersection, one seed, evaluated on 100 held-out episodes.
# Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweep.
# PYTHON names the interpreter (default: python).
set -euo pipefail
python="${PYTHON:-python}"
"$python" -m maip3o.train -m +scenario=intersection algo=maip3o,mappo seed=0 torch_threads=1 "$@"
for algo in maip3o mappo; do
  "$python" -m maip3o.evaluate checkpoint="runs/intersection/$algo/default/seed0" episodes=100
done
"$python" -m maip3o.plot runs/intersection/maip3o/default runs/intersection/mappo/default out=results/first_look/figures

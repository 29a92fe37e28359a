#!/usr/bin/env bash
# The comparison with a fixed weight of the penalty: MAIP3O, MAP3O and MAPPO on Intersection and on Parking Lot, five seeds
# each. Run it again after an interruption: what is finished is skipped. Arguments are passed on to the sweeps. SEEDS lists
# the seeds; see keep_runs.sh for EPISODES and PYTHON.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)" python="${PYTHON:-python}"
sweep=(seed="${SEEDS:-0,1,2,3,4}" num_workers=1 algo.penalty.growth=fixed evaluation.every_episodes=200 hydra.sweep.dir=runs/comparison)
"$python" -m maip3o.train -m +scenario=intersection algo=maip3o,map3o,mappo algo.penalty.eta=1 "${sweep[@]}" "$@"
"$python" -m maip3o.train -m +scenario=parking_lot algo=maip3o,map3o algo.penalty.eta=0.3 "${sweep[@]}" "$@"
"$python" -m maip3o.train -m +scenario=parking_lot algo=mappo algo.penalty.eta=1 "${sweep[@]}" "$@"
"$here/keep_runs.sh" comparison

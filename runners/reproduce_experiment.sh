#!/usr/bin/env bash
# A sweep of conf/experiment from training to figures. Run it again after an interruption: what is finished is skipped.
# Arguments after the name are passed on to the sweep, e.g.
#   runners/reproduce_experiment.sh ablation_alpha seed=0,1,2,3,4 hydra/launcher=submitit_slurm hydra.launcher.partition=cpu
# See keep_runs.sh for what comes after training and for EPISODES and PYTHON.
set -euo pipefail
if [ $# -eq 0 ]; then
  echo "usage: runners/reproduce_experiment.sh EXPERIMENT [OVERRIDE...]" >&2
  exit 2
fi
here="$(cd "$(dirname "$0")" && pwd)" experiment="$1"
shift
"${PYTHON:-python}" -m maip3o.train -m +experiment="$experiment" "$@"
"$here/keep_runs.sh" "$experiment"

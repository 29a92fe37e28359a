"""Draw a scenario as a picture: the whole map, scripted cars, their routes, the lidar of one of them.

python examples/draw_picture.py intersection picture.png [seed] [step]
"""

import sys
from dataclasses import replace

import cv2
import numpy as np

from maip3o.benchmarks.render import drive
from maip3o.config.options import integer
from maip3o.errors import UserError, exit_on_user_error
from maip3o.video.frames import still


def main(scenario: str = "", path: str = "", seed_text: str = "0", step_text: str = "60") -> None:
    if not path.endswith((".png", ".jpg")):
        raise UserError("write: python examples/draw_picture.py <scenario> <picture.png> [seed] [step]")
    seed, step = integer(0, 2**31 - 1)("seed", seed_text), integer(0, 100_000)("step", step_text)
    footage = drive(scenario, num_agents=10, seed=seed)
    unpredicted = replace(footage, risk=np.full_like(footage.risk, np.nan))  # a scripted car has no critic to ask
    if not cv2.imwrite(path, cv2.cvtColor(still(unpredicted, float(step), width=1100), cv2.COLOR_RGB2BGR)):
        raise UserError(f"{path}: cannot be written")


if __name__ == "__main__":
    exit_on_user_error(lambda: main(*sys.argv[1:5]))

"""Draw a scenario as a picture: the whole map, scripted cars, their routes, the lidar of one of them.

python examples/draw_picture.py intersection picture.png [seed] [step]
"""

import sys
from dataclasses import replace

import cv2
import numpy as np

from maip3o.benchmarks.render import drive
from maip3o.report.video import still

scenario, path = sys.argv[1:3]
seed, step = (int(text) for text in (*sys.argv[3:], *("0", "60")[len(sys.argv) - 3 :]))
footage = drive(scenario, num_agents=10, seed=seed)
unpredicted = replace(footage, risk=np.full_like(footage.risk, np.nan))  # a scripted car has no critic to ask
cv2.imwrite(path, cv2.cvtColor(still(unpredicted, float(step), width=1100), cv2.COLOR_RGB2BGR))

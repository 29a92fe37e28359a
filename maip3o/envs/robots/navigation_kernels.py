"""What a step of Safety Gymnasium computes outside MuJoCo, compiled. In Python it takes four fifths of a step.

Letters: N bodies or objects, G kinds of objects that the robot sees, C contacts.
"""

from __future__ import annotations

import math

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.jit import kernel

BINS = 16  # of the circle around the robot
REACH = 3.0  # metres

# Kinds of geoms, as far as a contact with them matters.
OTHER, ROBOT, BUTTON, GREMLIN, VASE = range(5)
KINDS = 5

LAYOUTS, DRAWS = 10_000, 100  # tries: of a whole layout, and of a place for one of its objects
TOO_FEW, NO_LAYOUT = -1, -2


@kernel
def observe_objects(
    xpos: FloatArray, position: FloatArray, rotation: FloatArray, bodies: IntArray, kinds: IntArray, seen: FloatArray
) -> None:
    """For each kind, how near its nearest object is in each direction: 0 nothing within reach, 1 here.

    xpos: [*, 3] of all bodies; position [3] and rotation [9] of the robot; bodies, kinds: [N]; seen: [G, BINS], filled.
    An object shows in its own bin, and fainter in the two beside it, so that readings do not jump.
    """
    seen[:] = 0.0
    width = 2.0 * math.pi / BINS
    for n in range(len(bodies)):
        east, north = xpos[bodies[n], 0] - position[0], xpos[bodies[n], 1] - position[1]
        up = 0.0 - position[2]
        ahead = east * rotation[0] + north * rotation[3] + up * rotation[6]
        left = east * rotation[1] + north * rotation[4] + up * rotation[7]
        near = max(0.0, REACH - math.hypot(ahead, left)) / REACH
        angle = math.atan2(left, ahead)
        if angle < 0.0:
            angle += 2.0 * math.pi
        own = int(angle / width)
        share = (angle - width * own) / width
        row = seen[kinds[n]]
        before, after = (own - 1) % BINS, (own + 1) % BINS
        own %= BINS
        row[own] = max(row[own], near)
        row[after] = max(row[after], share * near)
        row[before] = max(row[before], (1.0 - share) * near)


@kernel
def is_inside_any(xpos: FloatArray, position: FloatArray, bodies: IntArray, radius: float) -> bool:
    """Whether the robot's centre is nearer than `radius` to one of the bodies [N], seen from above."""
    for n in range(len(bodies)):
        east, north = xpos[bodies[n], 0] - position[0], xpos[bodies[n], 1] - position[1]
        if math.sqrt(east * east + north * north) < radius:
            return True
    return False


@kernel
def touched(pairs: IntArray, kind_of: IntArray, goal: int, found: FloatArray) -> bool:
    """Which kinds of geoms the robot touches, into `found` [KINDS]; returns whether it touches the geom `goal`.

    pairs: [C, 2] geoms in contact; kind_of: of every geom. The goal is no wrong button.
    """
    found[:] = 0.0
    at_goal = False
    for c in range(len(pairs)):
        one, other = pairs[c, 0], pairs[c, 1]
        if kind_of[one] != ROBOT:
            one, other = other, one
        if kind_of[one] != ROBOT:
            continue
        if other == goal:
            at_goal = True
        else:
            found[kind_of[other]] = 1.0
    return at_goal


@kernel
def draw_layout(draws: FloatArray, boxes: FloatArray, keepout: FloatArray, places: FloatArray) -> int:
    """Places [N, 2] of the objects, each in its box and at its distance from those before it.

    boxes: [N, 4] x_min, y_min, x_max, y_max; keepout: [N] metres; draws: uniform in [0, 1).
    Returns how many draws it took, or TOO_FEW if there are too few, or NO_LAYOUT if nothing fits.
    """
    used = 0
    for _ in range(LAYOUTS):
        complete = True
        for n in range(len(boxes)):
            fits = False
            for _ in range(DRAWS):
                if used + 2 > len(draws):
                    return TOO_FEW
                x = boxes[n, 0] + (boxes[n, 2] - boxes[n, 0]) * draws[used]
                y = boxes[n, 1] + (boxes[n, 3] - boxes[n, 1]) * draws[used + 1]
                used += 2
                fits = True
                for other in range(n):
                    east, north = x - places[other, 0], y - places[other, 1]
                    if math.sqrt(east * east + north * north) < keepout[other] + keepout[n]:
                        fits = False
                        break
                if fits:
                    places[n, 0], places[n, 1] = x, y
                    break
            if not fits:
                complete = False
                break
        if complete:
            return used
    return NO_LAYOUT

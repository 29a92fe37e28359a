"""Pictures of MuJoCo's own renderer, off screen: through EGL, or through OSMesa where there is no EGL."""

from __future__ import annotations

import atexit
import os
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maip3o.envs.robots.views import HEIGHT, WIDTH
from maip3o.errors import UserError

LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
CURE = "install one (Debian, Ubuntu: apt install libegl1, or libosmesa6)"
MOST_GEOMS = 2000


@dataclass(frozen=True, slots=True)
class View:
    """Where the camera stands: `distance` from what it looks at, in direction `azimuth`, looking down by -elevation."""

    distance: float  # metres
    elevation: float  # degrees
    azimuth: float = 90.0  # degrees
    look_at: tuple[float, float, float] = (0.0, 0.0, 0.0)  # relative to the body that it follows, if it follows one
    follows: int | None = None  # a body


@cache
def _gl_context() -> Any:
    """One for the process: a second one after the first was freed draws black."""
    wanted = os.environ.get("MUJOCO_GL", "")
    name = wanted if wanted in LIBRARIES else next((key for key, lib in LIBRARIES.items() if find_library(lib)), "")
    if not name:
        raise UserError(f"video=true: this machine has neither EGL nor OSMesa to draw robots with; {CURE}")
    try:
        if name == "egl":
            from mujoco.egl import GLContext
        else:
            from mujoco.osmesa import GLContext
        context = GLContext(WIDTH, HEIGHT)
        context.make_current()
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"video=true: {name} cannot draw on this machine ({reason}); {CURE}") from None
    atexit.register(context.free)  # left to the interpreter, it ends in a traceback
    return context


class MujocoCamera:
    """Takes pictures of a model; another model is noticed."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._model: Any = None

    def picture(self, model: Any, data: Any) -> NDArray[np.uint8]:
        """[HEIGHT, WIDTH, 3] RGB."""
        if model is not self._model:
            self._prepare(model)
        self._camera.lookat[:] = self.view.look_at
        if self.view.follows is not None:
            self._camera.lookat[:] += data.xpos[self.view.follows]
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(model, data, self._option, None, self._camera, everything, self._scene)
        area = mujoco.MjrRect(0, 0, WIDTH, HEIGHT)
        mujoco.mjr_render(area, self._scene, self._context)
        image = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        mujoco.mjr_readPixels(image, None, area, self._context)
        return image[::-1]

    def _prepare(self, model: Any) -> None:
        model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
        model.vis.quality.offsamples = 0  # three times as fast on a processor
        _gl_context()
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, MOST_GEOMS)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = 1
        self._camera = mujoco.MjvCamera()
        self._camera.distance, self._camera.elevation = self.view.distance, self.view.elevation
        self._camera.azimuth = self.view.azimuth
        self._model = model

"""Bullet's own ray test against one body, called from compiled code.

Panda3D ships Bullet inside of its own library, wraps each ray in a dozen Python objects, and sends it through the whole
world: past the sender's own box, which costs most, and past kerbs and ground, which lidar does not see. Here the same
function of the same library is called for the one car that a beam can hit. It is found through the library's symbol
table; where that fails (another platform, another Panda3D), rays go through Panda3D, with the same result.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import panda3d
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LIBRARY = Path(panda3d.__file__).parent / "libpandabullet.so.1.10"
PANDA3D_VERSION = "1.10.13"
BODY = "_ZTV11btRigidBody"
CALLBACK = "_ZTVN16btCollisionWorld24ClosestRayResultCallbackE"
RAY_TEST = (
    "_ZN16btCollisionWorld13rayTestSingleERK11btTransformS2_P17btCollisionObjectPK16btCollisionShapeS2_"
    "RNS_17RayResultCallbackE"
)
FIRST_VIRTUAL = 16  # bytes from a vtable's symbol to what objects point at
SEARCHED_BYTES = 400  # of a Panda3D body node, for its pointer to the Bullet body
BODY_TRANSFORM, BODY_SHAPE = 8, 200  # offsets of m_worldTransform and m_collisionShape in btCollisionObject

# What the function is given: two transforms, and a btCollisionWorld::ClosestRayResultCallback of Bullet 2.84.
_RAY_FIELDS: dict[str, tuple[str, int]] = {  # name: format, offset
    "start_basis": ("12f4", 0),
    "start": ("4f4", 48),
    "end_basis": ("12f4", 64),
    "end": ("4f4", 112),
    "vtable": ("i8", 128),
    "fraction": ("f4", 136),
    "hit": ("i8", 144),
    "group": ("i2", 152),
    "mask": ("i2", 154),
    "ray_start": ("4f4", 160),
    "ray_end": ("4f4", 176),
}
RAY = np.dtype(
    {
        "names": list(_RAY_FIELDS),
        "formats": [form for form, _ in _RAY_FIELDS.values()],
        "offsets": [offset for _, offset in _RAY_FIELDS.values()],
        "itemsize": 224,
    }
)


@dataclass
class RayTest:
    function: int  # address; 0: rays go through Panda3D
    body_vtable: int
    ray: Any  # [1] RAY
    body_offset: int = -1  # bytes from a Panda3D node to its pointer to the Bullet body; found at first use

    def body_of(self, panda_node: Any) -> int:
        """Address of the Bullet body of a Panda3D node."""
        if not self.function:
            return 0
        if self.body_offset < 0:
            self.body_offset = _pointer_offset(panda_node.this, self.body_vtable)
        return _follow(panda_node.this + self.body_offset)


def find_ray_test() -> RayTest:
    ray = np.zeros(1, dtype=RAY)
    known = sys.platform == "linux" and platform.machine() == "x86_64" and panda3d.__version__ == PANDA3D_VERSION
    if not known or not LIBRARY.exists():
        return RayTest(0, 0, ray)
    library = ctypes.CDLL(str(LIBRARY))
    try:
        body, callback, function = (
            ctypes.addressof(ctypes.c_char.in_dll(library, name)) for name in (BODY, CALLBACK, RAY_TEST)
        )
    except ValueError:  # no such symbol
        return RayTest(0, 0, ray)
    ray["start_basis"][:, [0, 5, 10]] = ray["end_basis"][:, [0, 5, 10]] = 1.0
    ray["vtable"], ray["group"], ray["mask"] = callback + FIRST_VIRTUAL, 1, -1
    return RayTest(function, body + FIRST_VIRTUAL, ray)


def _follow(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _pointer_offset(panda_object: int, vtable: int) -> int:
    """Where in a Panda3D object its pointer to a Bullet object stands, which is recognised by its vtable."""
    readable = _readable_memory()
    for offset in range(0, SEARCHED_BYTES, 8):
        target = _follow(panda_object + offset)
        if target % 8 == 0 and any(low <= target < high - 8 for low, high in readable) and _follow(target) == vtable:
            return offset
    raise LookupError("no Bullet object")


def _readable_memory() -> list[tuple[int, int]]:
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, permissions = line.split()[:2]
        if permissions.startswith("rw"):
            low, high = (int(address, 16) for address in addresses.split("-"))
            ranges.append((low, high))
    return ranges


@intrinsic
def call_ray_test(typing_context: Any, function: Any, ray: Any, body: Any) -> Any:
    """function(&ray.start_basis, &ray.end_basis, body, body->shape, &body->transform, &ray.vtable)"""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = cgutils.voidptr_t
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer] * 6)
        function_address, ray_address, body_address = arguments

        def pointer(address: Any, offset: int, kind: Any = byte_pointer) -> Any:
            return builder.inttoptr(builder.add(address, ir.Constant(address.type, offset)), kind)

        shape = builder.load(pointer(body_address, BODY_SHAPE, byte_pointer.as_pointer()))
        builder.call(
            builder.inttoptr(function_address, function_type.as_pointer()),
            [
                pointer(ray_address, _RAY_FIELDS["start_basis"][1]),
                pointer(ray_address, _RAY_FIELDS["end_basis"][1]),
                pointer(body_address, 0),
                shape,
                pointer(body_address, BODY_TRANSFORM),
                pointer(ray_address, _RAY_FIELDS["vtable"][1]),
            ],
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate

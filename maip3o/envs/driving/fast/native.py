"""Bullet's own functions and objects, reached from compiled code.

Panda3D ships Bullet inside of its own library and wraps each call in Python objects. Here functions of the same library
are called on the same objects; they are found through the library's symbol table, and objects are recognised by their
vtables. Where that fails (another platform, another Panda3D), `find_bullet` returns None, and everything goes through
Panda3D, with the same results.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import panda3d
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from maip3o.jit import kernel

LIBRARY = Path(panda3d.__file__).parent / "libpandabullet.so.1.10"
PANDA3D_VERSION = "1.10.13"
SYMBOLS = {
    "body": "_ZTV11btRigidBody",
    "vehicle": "_ZTV16btRaycastVehicle",
    "raycaster": "_ZTV25btDefaultVehicleRaycaster",
    "callback": "_ZTVN16btCollisionWorld24ClosestRayResultCallbackE",
    "ray_test": "_ZN16btCollisionWorld13rayTestSingleERK11btTransformS2_P17btCollisionObjectPK16btCollisionShapeS2_"
    "RNS_17RayResultCallbackE",
}
FIRST_VIRTUAL = 16  # bytes from a vtable's symbol to what objects point at
SEARCHED_BYTES = 400  # of an object, for its pointer to another one
# Offsets of m_worldTransform, m_broadphaseHandle, m_collisionShape in btCollisionObject, and of the box in the handle.
BODY_TRANSFORM, BODY_PROXY, BODY_SHAPE, PROXY_BOX = 8, 192, 200, 28

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
    "normal": ("4f4", 192),
    "point": ("4f4", 208),
}
RAY = np.dtype(
    {
        "names": list(_RAY_FIELDS),
        "formats": [form for form, _ in _RAY_FIELDS.values()],
        "offsets": [offset for _, offset in _RAY_FIELDS.values()],
        "itemsize": 224,
    }
)


class RayCall(NamedTuple):
    """What it takes to call Bullet's ray test."""

    function: int  # address; 0: rays have to go through Panda3D
    ray: Any  # [1] RAY


NO_RAY_CALL = RayCall(0, np.zeros(1, dtype=RAY))


class Bullet:
    """Addresses in the library."""

    def __init__(self, addresses: dict[str, int]) -> None:
        self.ray_test = addresses["ray_test"]
        self._vtables = {kind: addresses[kind] + FIRST_VIRTUAL for kind in ("body", "vehicle", "raycaster", "callback")}
        self._offsets: dict[str, int] = {}

    def vtable(self, kind: str) -> int:
        return self._vtables[kind]

    def pointer_to(self, kind: str, owner: int) -> int:
        """Address of the field in which the object at `owner` keeps its pointer to a Bullet object of that kind."""
        if kind not in self._offsets:  # the same in all owners
            self._offsets[kind] = _pointer_offset(owner, self._vtables[kind])
        return owner + self._offsets[kind]

    def body_of(self, node: Any) -> int:
        """Address of the btRigidBody of a BulletRigidBodyNode."""
        return follow(self.pointer_to("body", node.this))

    def ray_call(self) -> RayCall:
        ray = np.zeros(1, dtype=RAY)
        ray["start_basis"][:, [0, 5, 10]] = ray["end_basis"][:, [0, 5, 10]] = 1.0
        ray["vtable"], ray["group"], ray["mask"] = self._vtables["callback"], 1, -1
        return RayCall(self.ray_test, ray)


def find_bullet() -> Bullet | None:
    known = sys.platform == "linux" and platform.machine() == "x86_64" and panda3d.__version__ == PANDA3D_VERSION
    if not known or not LIBRARY.exists():
        return None
    library = ctypes.CDLL(str(LIBRARY))
    try:
        return Bullet({k: ctypes.addressof(ctypes.c_char.in_dll(library, name)) for k, name in SYMBOLS.items()})
    except ValueError:  # no such symbol
        return None


def follow(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _pointer_offset(owner: int, vtable: int) -> int:
    """Where in an object its pointer to a Bullet object stands, which is recognised by its vtable."""
    memory = _readable_memory()

    def readable(address: int) -> bool:
        return address % 8 == 0 and any(low <= address < high - 8 for low, high in memory)

    for offset in range(0, SEARCHED_BYTES, 8):
        if not readable(owner + offset):
            break
        target = follow(owner + offset)
        if readable(target) and follow(target) == vtable:
            return offset
    raise LookupError("no Bullet object of this kind")


def _readable_memory() -> list[tuple[int, int]]:
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, permissions = line.split()[:2]
        if permissions.startswith("rw"):
            low, high = (int(address, 16) for address in addresses.split("-"))
            ranges.append((low, high))
    return ranges


@intrinsic
def _at_address(typing_context: Any, address: Any) -> Any:
    """An integer as a pointer, for numba.carray."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic
def _call_ray_test(typing_context: Any, function: Any, ray: Any, body: Any) -> Any:
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


# mypy takes an intrinsic for a function that wants the typing context too.
at_address: Any = _at_address
call_ray_test: Any = _call_ray_test


@kernel
def cast(call: RayCall, x: float, y: float, z: float, end_x: float, end_y: float, end_z: float, body: int) -> float:
    """Bullet's ray test of one body: the fraction of the ray at which it is hit, or 1."""
    ray = call.ray[0]
    ray.start[0], ray.start[1], ray.start[2] = x, y, z
    ray.end[0], ray.end[1], ray.end[2] = end_x, end_y, end_z
    for axis in range(3):
        ray.ray_start[axis], ray.ray_end[axis] = ray.start[axis], ray.end[axis]
    ray.fraction = np.float32(1.0)
    ray.hit = 0
    call_ray_test(call.function, call.ray.ctypes.data, body)
    return ray.fraction

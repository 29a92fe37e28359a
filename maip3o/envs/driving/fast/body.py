"""One car in Bullet."""

from __future__ import annotations

from typing import Any

import numpy as np
from metadrive.component.vehicle.vehicle_type import StaticDefaultVehicle as Vehicle
from metadrive.constants import CollisionGroup
from metadrive.type import MetaDriveType
from panda3d.bullet import BulletBoxShape, BulletRigidBodyNode, BulletVehicle, ZUp
from panda3d.core import NodePath, TransformState, Vec3

LENGTH, WIDTH, HEIGHT = Vehicle.DEFAULT_LENGTH, Vehicle.DEFAULT_WIDTH, Vehicle.DEFAULT_HEIGHT
PARAMETERS = (  # keys of a MetaDrive vehicle's config
    "max_engine_force",
    "max_brake_force",
    "max_steering",
    "max_speed_km_h",
    "wheel_friction",
    "enable_reverse",
)


class Body:
    """BaseVehicle without its scene nodes for wheels."""

    def __init__(self, world: Any, parameters: dict[str, float]) -> None:
        self.node = BulletRigidBodyNode(MetaDriveType.VEHICLE)
        self.node.addShape(
            BulletBoxShape(Vec3(WIDTH / 2, LENGTH / 2, HEIGHT / 2)), TransformState.makePos(Vec3(0, 0, HEIGHT / 2))
        )
        self.node.setDeactivationEnabled(False)
        self.node.notifyCollisions(True)
        self.system = BulletVehicle(world, self.node)
        self.system.setCoordinateSystem(ZUp)
        self.path = NodePath(self.node)
        self.node.setIntoCollideMask(CollisionGroup.Vehicle)
        self.node.setMass(Vehicle.MASS)
        self._engine_force, self._brake_force = parameters["max_engine_force"], parameters["max_brake_force"]
        self._max_steering, self._max_speed = parameters["max_steering"], parameters["max_speed_km_h"]
        self._reverse = bool(parameters["enable_reverse"])
        self._brake = -1.0
        axle_height = Vehicle.TIRE_RADIUS - Vehicle.CHASSIS_TO_WHEEL_AXIS
        for front in (True, False):
            axle = Vehicle.FRONT_WHEELBASE if front else -Vehicle.REAR_WHEELBASE
            for side in (Vehicle.LATERAL_TIRE_TO_CENTER, -Vehicle.LATERAL_TIRE_TO_CENTER):
                self._add_wheel(Vec3(side, axle, axle_height), front, parameters["wheel_friction"])

    def _add_wheel(self, place: Vec3, front: bool, friction: float) -> None:
        """BaseVehicle._add_wheel"""
        wheel = self.system.createWheel()
        wheel.setChassisConnectionPointCs(place)
        wheel.setFrontWheel(front)
        wheel.setWheelDirectionCs(Vec3(0, 0, -1))
        wheel.setWheelAxleCs(Vec3(1, 0, 0))
        wheel.setWheelRadius(Vehicle.TIRE_RADIUS)
        wheel.setMaxSuspensionTravelCm(Vehicle.SUSPENSION_LENGTH)
        wheel.setSuspensionStiffness(Vehicle.SUSPENSION_STIFFNESS)
        wheel.setWheelsDampingRelaxation(4.8)
        wheel.setWheelsDampingCompression(1.2)
        wheel.setFrictionSlip(friction)
        wheel.setRollInfluence(0.5)

    def place(self, x: float, y: float, heading: float) -> None:
        """BaseVehicle.reset"""
        self.path.setP(0)
        self.path.setR(0)
        self.path.setH((heading - np.pi / 2) * 180 / np.pi)
        self.node.setStatic(False)
        self.path.setPos(Vec3(x, y, HEIGHT / 2))
        self.node.clearForces()
        self.node.setLinearVelocity(Vec3(0, 0, 0))
        self.node.setAngularVelocity(Vec3(0, 0, 0))
        self.system.resetSuspension()
        self.act(0.0, 0.0, 0.0)

    def act(self, steering: float, throttle: float, speed_km_h: float) -> None:
        """BaseVehicle._set_action, _apply_throttle_brake"""
        system = self.system
        system.setSteeringValue(steering * self._max_steering, 0)
        system.setSteeringValue(steering * self._max_steering, 1)
        if throttle >= 0:
            force, brake = (0.0 if speed_km_h > self._max_speed else self._engine_force * throttle), 2.0
        elif self._reverse:
            force, brake = self._engine_force * throttle, 0.0
        else:
            force, brake = 0.0, -throttle * self._brake_force
        for wheel in range(4):
            system.applyEngineForce(force, wheel)
        if brake != self._brake:
            self._brake = brake
            for wheel in range(4):
                system.setBrake(brake, wheel)

    def pose(self) -> tuple[float, ...]:
        """cars.POSE_COLUMNS"""
        node = self.node
        transform = node.getTransform()
        position, angles = transform.getPos(), transform.getHpr()
        velocity = node.getLinearVelocity()
        cell = transform.getInverse().getMat().getCell
        return (
            position[0],
            position[1],
            angles[0],
            angles[1],
            angles[2],
            velocity[0],
            velocity[1],
            node.getAngularVelocity()[2],
            cell(0, 0),
            cell(0, 1),
            cell(1, 0),
            cell(1, 1),
        )

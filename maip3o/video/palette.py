"""Colours of videos and replays: one per agent, readable on a dark road. RGB, 0..255."""

from __future__ import annotations

import colorsys

Colour = tuple[int, int, int]

GROUND: Colour = (17, 21, 28)
ROAD: Colour = (46, 52, 63)
ROAD_EDGE: Colour = (74, 82, 96)
LINE_WHITE: Colour = (150, 158, 170)
LINE_YELLOW: Colour = (205, 163, 60)
PANEL: Colour = (24, 29, 38)
PANEL_LINE: Colour = (48, 56, 70)
TEXT: Colour = (232, 236, 242)
TEXT_DIM: Colour = (146, 156, 172)
GOOD: Colour = (74, 201, 126)
BAD: Colour = (255, 82, 82)
WARN: Colour = (255, 176, 46)
WRECK: Colour = (96, 66, 70)

_AGENTS: list[Colour] = [
    (86, 160, 255),
    (255, 159, 64),
    (94, 214, 160),
    (240, 110, 170),
    (247, 214, 84),
    (160, 130, 250),
    (70, 208, 222),
    (255, 126, 102),
    (176, 216, 92),
    (222, 168, 236),
]


def agent_colour(slot: int) -> Colour:
    """Distinct for the first ten agents; further ones walk around the hue circle."""
    if slot < len(_AGENTS):
        return _AGENTS[slot]
    red, green, blue = colorsys.hls_to_rgb((slot * 0.618034) % 1.0, 0.66, 0.75)
    return round(255 * red), round(255 * green), round(255 * blue)


def mix(colour: Colour, towards: Colour, share: float) -> Colour:
    """`colour` moved by `share` towards another."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, towards, strict=True))
    return red, green, blue


def risk_colour(risk: float, limit: float) -> Colour:
    """Green well below the limit, amber at it, red from three times the limit on."""
    if risk <= limit:
        return mix(GOOD, WARN, max(0.0, risk / limit) ** 2 if limit > 0 else 1.0)
    return mix(WARN, BAD, min(1.0, (risk - limit) / (2 * limit)) if limit > 0 else 1.0)

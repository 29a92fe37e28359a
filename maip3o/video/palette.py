"""Colours of videos and replays: one per agent, readable on the road of a dark or a light theme. RGB, 0..255."""

from __future__ import annotations

import colorsys

Colour = tuple[int, int, int]

DARK: dict[str, Colour] = {
    "GROUND": (17, 21, 28),
    "ROAD": (46, 52, 63),
    "ROAD_EDGE": (74, 82, 96),
    "LINE_WHITE": (150, 158, 170),
    "LINE_YELLOW": (205, 163, 60),
    "PANEL": (24, 29, 38),
    "PANEL_LINE": (48, 56, 70),
    "TEXT": (232, 236, 242),
    "TEXT_DIM": (146, 156, 172),
    "GOOD": (74, 201, 126),
    "BAD": (255, 82, 82),
    "WARN": (255, 176, 46),
    "WRECK": (96, 66, 70),
}
LIGHT: dict[str, Colour] = {  # for papers
    "GROUND": (255, 255, 255),
    "ROAD": (222, 226, 231),
    "ROAD_EDGE": (176, 183, 192),
    "LINE_WHITE": (255, 255, 255),
    "LINE_YELLOW": (222, 168, 40),
    "PANEL": (248, 249, 251),
    "PANEL_LINE": (214, 219, 226),
    "TEXT": (26, 32, 42),
    "TEXT_DIM": (92, 102, 116),
    "GOOD": (24, 150, 84),
    "BAD": (208, 40, 40),
    "WARN": (222, 138, 0),
    "WRECK": (168, 140, 142),
}
THEMES = {"dark": DARK, "light": LIGHT}

GROUND, ROAD, ROAD_EDGE, LINE_WHITE, LINE_YELLOW, PANEL, PANEL_LINE, TEXT, TEXT_DIM, GOOD, BAD, WARN, WRECK = (
    DARK.values()
)


def use(theme: str) -> None:
    """The colours of all that this process draws from now on."""
    globals().update(THEMES[theme])


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
        return mix(_AGENTS[slot], (0, 0, 0), 0.25) if LIGHT["GROUND"] == GROUND else _AGENTS[slot]
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

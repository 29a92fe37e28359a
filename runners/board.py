"""TensorBoard: tags in five groups, and a layout that puts each J_C and its limit into one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maip3o.data.statistics import EpisodeTable

RENAMED = {"constraint": "constraints", "critic": "critics", "bound": "policy"}
OUTCOMES = "arrived|ended|fell|eliminated|time_out|cut"


def tag(name: str) -> str:
    """The tag of a metric: reward, constraints, policy, critics or speed, so that a group is one fold of the page."""
    group, _, rest = name.partition("/")
    if group in ("rollout", "evaluation"):
        source, _, quantity = rest.partition("/") if group == "evaluation" else ("training", "", rest)
        if quantity.startswith("cost/"):
            return f"constraints/{quantity.removeprefix('cost/')}/cost_{source}"
        return f"reward/{quantity}/{source}"
    if group == "loss":
        return "policy/loss" if rest == "policy" else f"critics/loss_{rest}"
    return f"{RENAMED.get(group, group)}/{rest}"


def layout(constraints: Sequence[str], estimate: str) -> dict[str, dict[str, list[Any]]]:
    """Of the page `Custom scalars`: J_C as the algorithm estimates it, in evaluation, and its limit."""
    costs = {
        name: ["Multiline", [f"constraints/{name}/{part}$" for part in (estimate, "limit", "cost_full")]]
        for name in constraints
    }
    return {
        **({"constraints": costs} if costs else {}),
        "reward": {
            "return": ["Multiline", ["reward/return/(training|full)"]],
            "how lives end, evaluation": ["Multiline", [f"reward/({OUTCOMES})/full"]],
        },
    }


class Board:
    """Scalars over training episodes. What an earlier session wrote after `episodes` is hidden."""

    def __init__(self, directory: Path, constraints: Sequence[str], estimate: str, episodes: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(directory), purge_step=episodes + 1 if episodes else None)
        if not episodes:
            self._writer.add_custom_scalars(layout(constraints, estimate))

    def write(self, numbers: Mapping[str, float], episodes: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(tag(name), value, episodes)
        self._writer.flush()

    def episodes(self, table: EpisodeTable, episodes: int) -> None:
        """Histograms of an evaluation: its episodes' returns, and how often each costs."""
        columns = {"reward/return_of_episodes": table.reward}
        columns |= {
            f"constraints/{name}/of_episodes": table.cost[:, k] for k, name in enumerate(table.world.cost_names)
        }
        for name, values in columns.items():
            self._writer.add_histogram(name, values, episodes)

    def close(self) -> None:
        self._writer.close()

"""The critical-difference diagram of mean ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.experiments.ranking import rank_test
from mdec.experiments.summary import ScoreTable
from mdec.report.figures import MDEC_COLORS, new_axes, short_title

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class CriticalDifferenceDisplay:
    """Mean ranks on a line; methods that a bar joins cannot be told apart.

    The title is the score that was ranked; methods and ranks go from the best to the
    worst, and the critical difference is Nemenyi's.
    """

    title: str
    methods: list[str]
    mean_ranks: Array
    critical_difference: float

    @classmethod
    def from_table(cls, table: ScoreTable) -> CriticalDifferenceDisplay:
        """Rank the methods of a table, three or more."""
        test = rank_test(table)
        order = np.argsort(test.mean_ranks, kind="stable")
        return cls(
            short_title(table.metric).removesuffix(" (%)"),
            [table.methods[i] for i in order],
            test.mean_ranks[order],
            test.critical_difference,
        )

    def groups(self) -> list[tuple[int, int]]:
        """Return the longest runs of methods within the critical difference.

        Examples
        --------
        >>> ranks = np.array([1.0, 1.5, 3.0])
        >>> CriticalDifferenceDisplay("", list("abc"), ranks, 1.6).groups()
        [(0, 1), (1, 2)]
        """
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(self.mean_ranks):
            within = np.flatnonzero(self.mean_ranks - rank <= self.critical_difference)
            last = int(within.max())
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw the diagram; return the axes."""
        n_methods = len(self.methods)
        half = -(-n_methods // 2)
        groups = self.groups()
        below = 0.4 * len(groups) + 0.7
        depth = below + 0.7 * half
        ax = new_axes(ax, 7.2, 0.36 * depth + 0.9)
        low, high = 1, n_methods
        ax.hlines(0, low, high, color="black", lw=1.2)
        for tick in range(low, high + 1):
            ax.vlines(tick, 0, 0.18, color="black", lw=1.0)
            ax.text(tick, 0.28, str(tick), ha="center", va="bottom", fontsize=8)
        for index, (method, rank) in enumerate(
            zip(self.methods, self.mean_ranks, strict=True)
        ):
            left = index < half
            level = -(below + 0.7 * (index if left else n_methods - 1 - index))
            edge = low - 0.25 if left else high + 0.25
            color = MDEC_COLORS.get(method, "#444444")
            ax.plot([rank, rank, edge], [0, level, level], color=color, lw=1.0)
            style = {"color": color, "va": "center", "fontsize": 9}
            if left:
                ax.text(
                    edge - 0.12, level, f"{method}  {rank:.2f}", ha="right", **style
                )
            else:
                ax.text(edge + 0.12, level, f"{rank:.2f}  {method}", ha="left", **style)
        for index, (first, last) in enumerate(groups):
            level = -(0.45 + 0.4 * index)
            start, end = self.mean_ranks[first] - 0.06, self.mean_ranks[last] + 0.06
            ax.hlines(level, start, end, color="#333333", lw=4, capstyle="round")
        self._draw_scale(ax, low)
        # Room for the names, which the axes do not know of.
        longest = max(len(method) for method in self.methods)
        margin = (0.05 + 0.018 * longest) * (high - low) + 0.6
        ax.set(xlim=(low - margin, high + margin), ylim=(-depth + 0.3, 2.4))
        ax.axis("off")
        return ax

    def _draw_scale(self, ax: Any, low: int) -> None:
        end = low + self.critical_difference
        ax.hlines(1.2, low, end, color="black", lw=1.4)
        ax.vlines([low, end], 1.05, 1.35, color="black", lw=1.4)
        text = f"critical difference {self.critical_difference:.2f}, {self.title}"
        ax.text(low, 1.45, text, fontsize=8, va="bottom")

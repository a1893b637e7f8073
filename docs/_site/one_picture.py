"""Draw docs/_static/one-picture.svg: base clusterings of digits, and their consensus.

Run with ``python docs/_site/one_picture.py``; the picture is kept in the repository,
because the README shows it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from mdec import MDEC
from mdec.report.graphics import COLOURS

INK = "#767676"
MEMBERS = (2, 5, 11, 18)
SMALL, LARGE = 104.0, 250.0


def dots(
    places: np.ndarray, labels: np.ndarray, shade: np.ndarray, radius: float
) -> list[str]:
    """Return one group of circles for each cluster, paler where less is sure."""
    found = []
    for cluster in np.unique(labels):
        colour = COLOURS[cluster % len(COLOURS)]
        inside = np.flatnonzero(labels == cluster)
        circles = "".join(
            f'<circle cx="{places[i, 0]:.0f}" cy="{places[i, 1]:.0f}" r="{radius}"'
            + (f' opacity="{shade[i]:.1f}"/>' if shade[i] < 1 else "/>")
            for i in inside
        )
        found.append(f'<g fill="{colour}">{circles}</g>')
    return found


def main() -> None:
    """Fit 400 digits and write the picture."""
    X = load_digits().data[:400]
    model = MDEC(n_clusters=10, random_state=0, n_jobs=2).fit(X)
    places = TSNE(perplexity=30, random_state=0).fit_transform(X)
    unit = (places - places.min(axis=0)) / np.ptp(places, axis=0)
    parts = []
    for number, member in enumerate(MEMBERS):
        corner = np.array([8 + 124 * (number % 2), 26 + 132 * (number // 2)])
        labels = model.ensemble_.labels[:, member]
        parts += dots(corner + SMALL * unit, labels, np.ones(len(X)), 2)
    shade = 0.25 + 0.75 * np.clip((model.confidence_ - 0.5) / 0.4, 0, 1)
    corner = np.array([342, 22])
    parts += dots(corner + LARGE * unit, model.labels_, shade, 3.6)
    arrow = "M262 146h44m-12-9 12 9-12 9"
    text = f'<g fill="{INK}" font-family="system-ui,sans-serif" font-size="13">'
    text += '<text x="8" y="14">4 of 100 base clusterings</text>'
    text += '<text x="342" y="14">their consensus</text></g>'
    Path(__file__).parents[1].joinpath("_static", "one-picture.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 282" role="img">\n'
        "<title>Base clusterings of handwritten digits and their consensus</title>\n"
        f'{text}\n<path d="{arrow}" fill="none" stroke="{INK}" stroke-width="3"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()

"""
A hundred thousand points by landmarks
======================================

A matrix of all pairs would have ten billion entries. With landmarks, time and memory
grow only in proportion to the number of rows.
"""

# %%
# Two rings around a disc. Each is a cluster.

import time

import matplotlib.pyplot as plt
import numpy as np

from mdec import MDEC
from mdec.bench.evaluation import ari

rng = np.random.default_rng(0)
y = rng.integers(3, size=100_000)
radius = np.sqrt(rng.random(y.size)) * (y == 0) + np.array([0, 2.2, 3.8])[y]
angle = rng.random(y.size) * 2 * np.pi
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
X += 0.12 * rng.normal(size=X.shape)

# %%
# ``base="auto"`` would choose landmarks here as well. Every member uses both features,
# because half of two would be one.

start = time.perf_counter()
model = MDEC(
    n_clusters=3,
    consensus="bipartite",
    base="landmark",
    max_features=1.0,
    ensemble_size=5,
    n_jobs=2,
    random_state=0,
).fit(X)
print(f"{time.perf_counter() - start:.0f} s, ARI {ari(y, model.labels_):.3f}")

# %%
fig, axes = plt.subplots(
    1,
    2,
    figsize=(8, 3.9),
    num="A hundred thousand points: one landmark member, and the consensus of five",
)
for ax, found, title in (
    (axes[0], model.ensemble_.labels[:, 0], "one member"),
    (axes[1], model.labels_, "consensus"),
):
    ax.scatter(*X.T, s=0.2, c=[f"C{k % 20}" for k in found], rasterized=True)
    ax.set(xticks=[], yticks=[], aspect="equal", title=title)
plt.show()

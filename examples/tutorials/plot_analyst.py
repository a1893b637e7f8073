"""
An analyst with a million embeddings
====================================

Many rows, some hundred columns of floats from a network, no labels. Graphs of all
samples cost N squared; landmarks cost N. This page uses 30,000 rows, so that it runs
in seconds; the code is the same for a million and for a file larger than memory.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
topics = rng.integers(12, size=30_000)
centres = rng.normal(size=(12, 64))
rows = (centres[topics] + 1.8 * rng.normal(size=(30_000, 64))).astype(np.float32)
folder = Path(tempfile.mkdtemp())
np.save(folder / "rows.npy", rows)

# %%
# Fit from the file
# -----------------
# The rows are read in blocks; ``open_rows`` takes .npy and .parquet, and labels are the
# same as from an array in memory. ``base="auto"`` takes landmarks above 20,000 rows.

from mdec import MDEC
from mdec.rows import open_rows

model = MDEC(
    n_clusters=12,
    consensus="bipartite",  # the one that scales furthest
    ensemble_size=10,
    n_jobs=2,
    random_state=0,
    base="auto",
).fit(open_rows(folder / "rows.npy"))
print(model.base_, model.ensemble_)

# %%
# Ten members are enough for a look; thirty to a hundred give steadier answers.
# Embeddings need no preparation, and are not to be standardised column by column unless
# their columns have different units. ``kernel="cosine"`` compares directions.
# ``verbose=1`` says how long it will still take, and ``checkpoint="folder"`` stores
# finished members, so that a run that is stopped goes on.
#
# What is in the clusters
# -----------------------

found = pd.DataFrame({"cluster": model.labels_, "confidence": model.confidence_})
print(found.groupby("cluster").confidence.describe().round(2))

# %%
# Rows with a confidence near 0.5 lie between two clusters. Read those first: they show
# what the clusters disagree about. Then read some of the most confident of each, to
# name it.

from mdec.report.plots import ConfidenceDisplay

fig, ax = plt.subplots(figsize=(6.4, 3), num="Confidence of 30,000 rows")
ConfidenceDisplay.from_estimator(model).plot(ax)
plt.show()

# %%
# New rows tomorrow
# -----------------
# Nothing is clustered again. ``unlike`` is true for rows unlike any in training, whose
# cluster means little: a reason to fit again when many are flagged.

model.save(folder / "model.npz")
model = MDEC.load(folder / "model.npz")
placed = model.place(rows[:100])
print(placed.clusters[:10], placed.confidence[:3].round(2), placed.unlike.sum())

# %%
# How many clusters?
# ------------------
# With embeddings of text or images there is often no one right number. Pick the
# resolution that you can work with; another one costs only the consensus.

for k in (6, 12, 24):
    print(k, np.bincount(model.recluster(n_clusters=k)))

# %%
# Read on: :doc:`many rows, files and clusters of machines </scale>`, :doc:`confidence
# </confidence>`, :doc:`speed and memory </performance>`.

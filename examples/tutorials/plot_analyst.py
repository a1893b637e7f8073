"""
An analyst with a million embeddings
====================================

You have many rows with a few hundred columns, the output of a neural network, and no
labels. Similarity graphs need time proportional to the square of the number of rows;
landmarks need time proportional to it. This page uses 30,000 rows so that it runs in
seconds. The code is the same for a million rows, and for a file larger than memory.
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
# ``open_rows`` reads .npy and .parquet files in blocks; the labels are the same as for
# an array in memory. ``base="auto"`` uses landmarks above 20,000 rows.

from mdec import MDEC
from mdec.rows import open_rows

model = MDEC(
    n_clusters=12,
    consensus="bipartite",  # scales to the most rows
    ensemble_size=10,
    n_jobs=2,
    random_state=0,
    base="auto",
).fit(open_rows(folder / "rows.npy"))
print(model.base_, model.ensemble_)

# %%
# Ten members are enough for a first look; thirty to a hundred give more stable answers.
# Embeddings need no preparation. Do not standardise their columns unless they have
# different units. ``kernel="cosine"`` compares directions only. ``verbose=1`` shows the
# remaining time, and ``checkpoint="folder"`` stores finished members, so that an
# interrupted run can continue.
#
# What is in the clusters?
# ------------------------

found = pd.DataFrame({"cluster": model.labels_, "confidence": model.confidence_})
print(found.groupby("cluster").confidence.describe().round(2))

# %%
# Rows with a confidence near 0.5 lie between two clusters. Look at those first: they
# show where the boundary is. Then look at some of the most confident rows of each
# cluster to name it.

from mdec.report.plots import ConfidenceDisplay

fig, ax = plt.subplots(figsize=(6.4, 3), num="Confidence of 30,000 rows")
ConfidenceDisplay.from_estimator(model).plot(ax)
plt.show()

# %%
# Assign new rows
# ---------------
# Nothing is clustered again. ``unlike`` is true for rows that are unlike any training
# row, whose cluster means little. If many rows are flagged, fit again.

model.save(folder / "model.npz")
model = MDEC.load(folder / "model.npz")
placed = model.place(rows[:100])
print(placed.clusters[:10], placed.confidence[:3].round(2), placed.unlike.sum())

# %%
# How many clusters?
# ------------------
# For embeddings of text or images there is often no single right number. Choose the
# resolution that you can work with; trying another one only repeats the consensus.

for k in (6, 12, 24):
    print(k, np.bincount(model.recluster(n_clusters=k)))

# %%
# Read on: :doc:`many rows, files and clusters of machines </scale>`, :doc:`confidence
# </confidence>`, :doc:`speed and memory </performance>`.

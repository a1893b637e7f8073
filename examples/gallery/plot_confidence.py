"""
How certain is each assignment?
===============================

All labels look equally certain, but they are not. ``confidence_`` says how firmly the
ensemble assigns a sample to its cluster: 1 is certain, 0.5 is undecided between two.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdec import MDEC
from mdec.confidence import ambiguous_samples
from mdec.report.plots import SampleMapDisplay

X, y = load_digits(return_X_y=True)
X, y = X[:900], y[:900]
model = MDEC(n_clusters=10, random_state=0, n_jobs=2).fit(X)
undecided = ambiguous_samples(model.confidence_)
print(f"{undecided.size} of {len(X)} samples are ambiguous")

# %%
# A map of the samples by their co-association: samples that the members often cluster
# together are close. Coloured by cluster on the left, by confidence on the right.
# Uncertain samples lie where clusters touch, and in small groups that could be
# clusters of their own.

by_cluster = SampleMapDisplay.from_estimator(model)
fig, axes = plt.subplots(
    1,
    2,
    figsize=(9, 3.8),
    num="900 digits by consensus: their clusters, and the confidence of each sample",
)
by_cluster.plot(axes[0], s=8)
axes[0].legend(ncols=2, title="cluster")
axes[0].set_title("cluster")
x, height = by_cluster.places.T
shown = axes[1].scatter(x, height, c=model.confidence_, s=8, vmin=0.5, vmax=1.0)
axes[1].set(xticks=[], yticks=[], title="confidence")
fig.colorbar(shown, ax=axes[1])
plt.show()

# %%
# Is low confidence a warning? For each range of confidence, the share of samples whose
# digit is the most frequent one in their cluster:

usual = np.array([np.bincount(y[model.labels_ == k]).argmax() for k in range(10)])
right = usual[model.labels_] == y
for low, high in ((0.0, 0.6), (0.6, 0.75), (0.75, 0.9), (0.9, 1.01)):
    band = (model.confidence_ >= low) & (model.confidence_ < high)
    print(f"{low:.2f} to {min(high, 1):.2f}: {right[band].mean():.2f} of {band.sum()}")

"""
Handwritten digits, from pixels to clusters
===========================================

1797 images of 8 x 8 pixels, no labels, ten clusters. The picture shows which
samples of each cluster are most certain, and which are least.
"""

# %%
# One call makes a hundred base clusterings and their consensus.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdec import MDEC
from mdec.bench.evaluation import ari, nmi_max

X, y = load_digits(return_X_y=True)
model = MDEC(n_clusters=10, random_state=0, n_jobs=2).fit(X)
print(f"NMI {nmi_max(y, model.labels_):.3f}, ARI {ari(y, model.labels_):.3f}")

# %%
# The true digits are used for the scores alone. Here the clusters stand in rows: on the
# left the eight images that the ensemble holds most firmly, on the right the four that
# it holds least. The surest are alike; among the others are digits of another kind.

fig, axes = plt.subplots(
    10,
    12,
    figsize=(7.2, 6),
    num="Ten clusters of digits: the eight surest of each, and the four least sure",
)
for row, cluster in zip(axes, range(10), strict=True):
    inside = np.flatnonzero(model.labels_ == cluster)
    inside = inside[np.argsort(-model.confidence_[inside], kind="stable")]
    for ax, sample in zip(row, [*inside[:8], *inside[-4:]], strict=True):
        ax.imshow(X[sample].reshape(8, 8), cmap="Greys")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=f"C{cluster}")
axes[0, 3].set_title("surest")
axes[0, 9].set_title("least sure")
plt.show()

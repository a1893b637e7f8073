"""
Handwritten digits, from pixels to clusters
===========================================

1797 images of 8 x 8 pixels, without labels, in ten clusters. The figure shows the most
and the least certain images of each cluster.
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
# The true digits are only used for the scores. Each row of the figure is a cluster: the
# eight most certain images on the left, the four least certain on the right. The most
# certain ones look alike; among the others there are different digits.

fig, axes = plt.subplots(
    10,
    12,
    figsize=(7.2, 6),
    num="Ten clusters of digits: the most and least certain images of each",
)
for row, cluster in zip(axes, range(10), strict=True):
    inside = np.flatnonzero(model.labels_ == cluster)
    inside = inside[np.argsort(-model.confidence_[inside], kind="stable")]
    for ax, sample in zip(row, [*inside[:8], *inside[-4:]], strict=True):
        ax.imshow(X[sample].reshape(8, 8), cmap="Greys")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=f"C{cluster}")
axes[0, 3].set_title("most certain")
axes[0, 9].set_title("least certain")
plt.show()

"""
Numbers and categories: Gower's distance
========================================

Gower's distance is a mean over the columns: for numbers, the difference divided by the
range; for categories, 0 if they are equal and 1 if not. MDEC accepts it as a matrix of
all pairs, or as a function that is applied to random columns.
"""

# %%
# Six measurements and two categories of 120 samples in three groups. In each category
# every tenth sample is wrong.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from mdec import MDEC

X, y = make_blobs(120, n_features=6, centers=3, random_state=0)
tenth = np.arange(120) % 10
frame = pd.DataFrame(X).add_prefix("lab ")
frame["site"] = np.array(["north", "south", "west"])[(y + (tenth == 0)) % 3]
frame["stage"] = np.array(["i", "ii", "ii"])[(y + (tenth == 5)) % 3]
numbers, categories = list(frame.columns[:6]), ["site", "stage"]

# %%
# Scale ranges to one, and turn categories into columns of zeros and halves: if two
# categories differ, two of these columns do. Then add up the differences.

encode = make_column_transformer(
    (MinMaxScaler(), numbers), (OneHotEncoder(), categories)
)
rows = encode.fit_transform(frame)
rows[:, len(numbers) :] /= 2


def city_block(rows):
    """Return the sum of the differences of all pairs."""
    return squareform(pdist(rows, "cityblock"))


gower = city_block(rows) / frame.shape[1]

# %%
# With the matrix, all base clusterings use the same distances. With the function, each
# draws its own columns, which is better if there are many.

by_pairs = MDEC(3, metric="precomputed", random_state=0).fit(gower)
by_columns = MDEC(3, metric=city_block, ensemble_size=50, random_state=0).fit(rows)

fig, axes = plt.subplots(
    1, 2, figsize=(8, 3.6), num="Gower's distances, in the order of the clusters"
)
for ax, model, title in zip(
    axes, (by_pairs, by_columns), ("from all pairs", "column by column"), strict=True
):
    order = np.argsort(model.labels_, kind="stable")
    shown = ax.imshow(gower[np.ix_(order, order)], cmap="Blues_r")
    ax.set(xticks=[], yticks=[], title=title)
fig.colorbar(shown, ax=axes, shrink=0.8, label="distance")
plt.show()

# %%
# A category weighs as much as the whole range of a number, so leave out categories that
# should not matter.

"""
A researcher comparing methods
==============================

Is a method better, on which data, and is the difference more than noise? mdec provides
ensembles as objects, the paper's baselines, clearly defined scores, and studies as
files.
"""

# %%
# One ensemble, many consensus functions
# --------------------------------------
# Compare consensus functions on the same base clusterings: make the ensemble once, and
# pass it to each function.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdec import generate_ensemble
from mdec.bench.evaluation import nmi_max
from mdec.consensus import CONSENSUS

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]
ensemble = generate_ensemble(X, ensemble_size=50, random_state=0, n_jobs=2)

for name, consensus in CONSENSUS.items():
    print(name, round(nmi_max(y, consensus(ensemble, 10, random_state=0)), 3))

# %%
# ``ensemble[:20]`` is an ensemble of the first 20 members, ``ensemble.save`` writes it
# to a file, and ``Ensemble.from_labels`` accepts base clusterings from elsewhere.
#
# The paper's baselines
# ---------------------

from mdec.baselines import BASELINES, GENERATION, generate_kmeans_ensemble

k_means = generate_kmeans_ensemble(X, ensemble_size=20, random_state=0)
for name in ("EAC", "LWEA", "SEC"):
    assert GENERATION[name] == "kmeans"
    print(name, round(nmi_max(y, BASELINES[name](k_means, 10, random_state=0)), 3))

# %%
# What each part contributes
# --------------------------
# Change one thing at a time and keep the seeds. One seed says little; this uses ten.
# There are several versions of NMI, which differ by some percent: ``nmi_max`` divides
# by the larger entropy, as the paper's tables do. Always say which one you report.

from mdec.consensus import hierarchical
from mdec.weights import uniform_weights

scores = {"weighted": [], "uniform": []}
for seed in range(10):
    made = generate_ensemble(X, ensemble_size=30, random_state=seed, n_jobs=2)
    scores["weighted"].append(nmi_max(y, hierarchical(made, 10)))
    equal = hierarchical(made, 10, weights=uniform_weights(made))
    scores["uniform"].append(nmi_max(y, equal))

difference = np.subtract(scores["weighted"], scores["uniform"])
error = difference.std(ddof=1) / np.sqrt(10)
print(f"weights change NMI by {difference.mean():+.3f}, standard error {error:.3f}")

fig, ax = plt.subplots(
    figsize=(6.4, 2.4), num="NMI of ten seeds, with and without cluster weights"
)
for row, values in enumerate(scores.values()):
    ax.scatter(values, np.full(10, row), s=20)
ax.set(yticks=[0, 1], yticklabels=list(scores), ylim=(-0.5, 1.5), xlabel="NMI")
plt.show()

# %%
# A study is a file
# -----------------
# ::
#
#     $ mdec bench list                   # the studies that come with the package
#     $ mdec bench run quick              # two built-in datasets, four methods
#     $ mdec bench report quick.jsonl     # tables, ranks, tests and figures
#
# A study lists datasets, methods, parameters and repetitions. Each run adds one line to
# a file before the next begins; the report is computed from these lines and never fits
# anything. To add your own method, write ``{ name = "mine", function =
# "my_module:cluster" }``.
#
# Read on: :doc:`studies </experiments>`, :doc:`datasets </datasets>`, :doc:`the paper's
# experiments repeated </results/README>`, :doc:`where paper, released code and mdec
# differ </deviations>`.

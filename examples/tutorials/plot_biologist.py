"""
A biologist with an expression table
====================================

You have a table of samples and genes from microarrays or RNA-seq. Which groups of
samples are there, which genes distinguish them, and how certain is the answer?

This page uses a simulated table: 120 samples of four types and 2000 genes, with 25
marker genes per type and sequencing depths that differ by more than the types do.
Replace it with your own file.
"""

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
types = np.repeat(["A", "B", "C", "D"], 30)
level = np.tile(rng.lognormal(1.0, 1.0, 2000), (4, 1))
for k in range(4):
    level[k, 25 * k : 25 * k + 25] *= 3.0
depth = rng.lognormal(0.0, 0.8, (120, 1))
counts = rng.poisson(level[np.repeat(range(4), 30)] * depth)

folder = Path(tempfile.mkdtemp())
table = pd.DataFrame(counts, columns=[f"gene{i}" for i in range(2000)])
table.insert(0, "sample", [f"patient{i:03}" for i in range(120)])
table.to_csv(folder / "expression.csv", index=False)

# %%
# Look before you cluster
# -----------------------
# A dry run says how the table is read: how many samples and genes it has, where names
# come from, what kind of values it contains, and how they would be prepared. Nothing is
# clustered.


def run(command: str) -> None:
    """Run a command as in a terminal, and print what it says."""
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(done.stdout)


run("mdec fit expression.csv --dry-run")

# %%
# Prepare the values
# ------------------
# Raw expression values give poor clusters, because a few highly expressed genes, or the
# sequencing depth, dominate all distances. ``mdec fit`` recognises the kind of values
# and prepares them. In Python, put ``ExpressionPreparation`` before the estimator.

from sklearn.pipeline import make_pipeline

from mdec import MDEC
from mdec.bench.evaluation import ari
from mdec.preparation import ExpressionPreparation

X = table.drop(columns="sample")
raw = MDEC(n_clusters=4, random_state=0).fit(X)
pipe = make_pipeline(ExpressionPreparation(), MDEC(n_clusters=4, random_state=0)).fit(X)

print(pipe[0].reason_)
print(f"adjusted Rand index: raw {ari(types, raw.labels_):.2f}, ", end="")
print(f"prepared {ari(types, pipe[-1].labels_):.2f}")

# %%
# How many groups?
# ----------------
# Without ``--k``, mdec chooses the number of clusters and gives the reason.
# ``groups/report.html`` opens in any browser and shows the evidence and the
# alternatives; :doc:`here is such a report </report>`.

run("mdec fit expression.csv --out groups --quiet")
summary = pd.read_json(folder / "groups" / "summary.json", typ="series")
print(summary["reason"])

# %%
# In Python, the criteria for each number of clusters:

from mdec.report.plots import ConsensusMatrixDisplay, KSelectionDisplay

auto = MDEC(n_clusters="auto", random_state=0).fit(pipe[0].transform(X))
fig, axes = plt.subplots(
    1,
    2,
    figsize=(8.4, 3.6),
    num="The eigengap for each number of clusters, and the consensus of all pairs",
)
KSelectionDisplay.from_estimator(auto).plot(axes[0])
ConsensusMatrixDisplay.from_estimator(auto).plot(axes[1])
plt.show()

# %%
# How certain is it, and which genes matter?
# ------------------------------------------
# ``labels.csv`` contains cluster, confidence and second choice of each sample.

print(pd.read_csv(folder / "groups" / "labels.csv").head())

# %%
# ``signatures.csv`` lists the genes with the largest standardised differences. These
# are effect sizes without p-values: the groups were made from the same genes, so a test
# would be circular.

print(pd.read_csv(folder / "groups" / "signatures.csv").groupby("cluster").head(3))

# %%
# New patients
# ------------
# Genes are matched by name, values are prepared as in training, and ``unlike_training``
# marks samples that are unlike any training sample.

table.sample(5, random_state=0).to_csv(folder / "new.csv", index=False)
run("mdec predict groups/model.npz new.csv --out placed.csv --quiet")
print(pd.read_csv(folder / "placed.csv"))

# %%
# Read on: :doc:`how a table is read </tables>`, :doc:`choosing K </choosing-k>`,
# :doc:`confidence </confidence>`, :doc:`coming from R </howto/from-r>`.

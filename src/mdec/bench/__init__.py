"""The paper's comparison: baselines, datasets, experiments and their pages."""

"""The paper's thirty datasets, a few built-in ones, and files of your own."""

from mdec.bench.datasets._load import Dataset, load_dataset
from mdec.bench.datasets._registry import (
    BASE_URL,
    DatasetInfo,
    data_dir,
    dataset_info,
    fetch_dataset,
    list_datasets,
)

__all__ = [
    "BASE_URL",
    "Dataset",
    "DatasetInfo",
    "data_dir",
    "dataset_info",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
]

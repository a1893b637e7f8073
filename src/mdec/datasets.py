"""The paper's datasets, under the name people look for."""

from mdec.bench.datasets import *  # noqa: F403
from mdec.bench.datasets import __all__ as __all__

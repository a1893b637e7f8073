"""The methods that the paper compares with, under the name people look for."""

from mdec.bench.baselines import *  # noqa: F403
from mdec.bench.baselines import __all__ as __all__

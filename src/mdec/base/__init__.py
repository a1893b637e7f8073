"""How one member clusters."""

from mdec.base.custom import from_estimator

__all__ = ["from_estimator"]

"""How one member clusters."""

from mdec.base.own import from_estimator

__all__ = ["from_estimator"]

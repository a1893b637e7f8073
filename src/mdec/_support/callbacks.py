"""Progress through scikit-learn's callbacks, where the installed version has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's; an estimator then takes no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "member_progress", "with_callbacks"]


def member_progress(estimator: Any, n_members: int) -> Callable[[int, int], None]:
    """Return a hook that tells an estimator's callbacks of each finished member.

    Parameters
    ----------
    estimator : CallbackSupportMixin
        The estimator being fitted.
    n_members : int
        Members to be made.

    Returns
    -------
    callable
        Called as ``hook(done, n_members)``.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return lambda *_: None
    context = estimator._init_callback_context(max_subtasks=n_members)
    context.call_on_fit_task_begin(estimator=estimator)

    def hook(done: int, total: int) -> None:
        task = context.subcontext(task_name="member")
        task.call_on_fit_task_begin(estimator=estimator)
        task.call_on_fit_task_end(estimator=estimator)
        if done == total:
            context.call_on_fit_task_end(estimator=estimator)

    return hook

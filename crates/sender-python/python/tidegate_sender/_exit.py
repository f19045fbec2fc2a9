"""What is queued when the interpreter exits is sent, within a time."""

from __future__ import annotations

import atexit
import time
import weakref
from typing import Any

_senders: weakref.WeakSet[Any] = weakref.WeakSet()
# Nobody else holds these any more.
_unsent: list[Any] = []
_until: float | None = None


def watch(sender: Any) -> None:
    """Has a sender flushed at the exit, if it lives until then."""
    _senders.add(sender)


def keep_if_unsent(sender: Any) -> None:
    """Keeps a sender that nobody holds any more until what it has queued is sent."""
    _unsent[:] = [kept for kept in _unsent if kept.queued]
    if sender.queued:
        _unsent.append(sender)


def flush(senders: list[Any]) -> None:
    """Sees off what senders have queued; from the exit on all calls share one time."""
    if not senders:
        return
    until = _until
    if until is None:
        until = time.monotonic() + max(sender.exit_timeout for sender in senders)
    for sender in senders:
        # All at once, and then one wait for all.
        sender.flush(0)
    for sender in senders:
        sender.flush(max(until - time.monotonic(), 0))


@atexit.register
def _exit() -> None:
    global _until
    senders = [*_senders, *_unsent]
    if senders:
        # Requests of other exit handlers after this, such as that of `logging`, have the rest of the time.
        _until = time.monotonic() + max(sender.exit_timeout for sender in senders)
        flush(senders)

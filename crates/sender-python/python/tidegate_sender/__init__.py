"""Sends spans, logs and metrics to any OTLP or Elastic APM endpoint, from memory fixed at the start."""

from __future__ import annotations

import warnings
from typing import Any

from . import _exit
from ._native import Scope, Sender as _Sender

__all__ = ["Scope", "Sender"]


class Sender(_Sender):
    """Takes events from any thread, and sends them from one of its own.

    Started as the environment says, and then as the arguments say. What is queued when the interpreter exits is
    sent, for which all senders together have the longest `exit_timeout` of them, in seconds.
    """

    def __new__(cls, *arguments: Any, exit_timeout: float = 5.0, **settings: Any) -> Sender:
        sender = super().__new__(cls, *arguments, **settings)
        sender.exit_timeout = exit_timeout
        for warning in sender.warnings:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)
        _exit.watch(sender)
        return sender

    def __del__(self) -> None:
        # Python calls this once. What is still queued goes on being sent, and is waited for at the exit.
        _exit.keep_if_unsent(self)

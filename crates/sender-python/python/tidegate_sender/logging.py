"""A handler for the standard library's `logging`."""

from __future__ import annotations

import logging
import traceback

from . import Sender, _exit

try:
    from opentelemetry.trace import get_current_span
except ImportError:
    get_current_span = None

__all__ = ["Handler"]

# Attributes of every record; anything else came through `extra`.
_USUAL = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}


class Handler(logging.Handler):
    """Sends records with their `extra`, their exception, and the span of OpenTelemetry they were made in.

    Never waits and never raises: what is not taken is counted in `sender.stats()`.
    """

    def __init__(self, sender: Sender, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.sender = sender

    def createLock(self) -> None:
        # The sender needs none, and a lock could be held for ever after a fork.
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            attributes = {key: value for key, value in vars(record).items() if key not in _USUAL}
            attributes["log.target"] = record.name
            attributes["code.file.path"] = record.pathname
            attributes["code.line.number"] = record.lineno
            attributes["code.function.name"] = record.funcName
            if record.exc_info and record.exc_info[0] is not None:
                kind, error, trace = record.exc_info
                attributes["exception.type"] = kind.__qualname__
                attributes["exception.message"] = str(error)
                attributes["exception.stacktrace"] = "".join(traceback.format_exception(kind, error, trace))
            where = {}
            context = get_current_span().get_span_context() if get_current_span else None
            if context is not None and context.is_valid:
                where["trace_id"] = context.trace_id.to_bytes(16, "big")
                where["span_id"] = context.span_id.to_bytes(8, "big")
                where["flags"] = int(context.trace_flags)
            self.sender.log(
                self.format(record) if self.formatter else record.getMessage(),
                time=int(record.created * 1e9),
                severity=_severity(record.levelno),
                severity_text=record.levelname,
                attributes=attributes,
                **where,
            )
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Does nothing: `logging` calls it also in the middle of things. `close` sees off what is queued."""

    def close(self) -> None:
        """Sends what is queued, within the sender's `exit_timeout`: `logging.shutdown` calls it at the exit."""
        _exit.flush([self.sender])
        super().close()


def _severity(level: int) -> int:
    """OTLP's number for a level of `logging`: its tens, in steps of four."""
    if level <= logging.NOTSET:
        return 0
    return min(max(level * 4 // 10 + 1, 1), 21)

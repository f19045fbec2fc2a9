"""Sends spans, logs and metrics to any OTLP or Elastic APM endpoint, from memory fixed at the start."""

from ._native import Scope, Sender

__all__ = ["Scope", "Sender"]

"""Sends lines with python-logging-loki: loki.py URL TENANT COUNT."""

import logging
import sys

import logging_loki
import requests

url, tenant, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
logging.raiseExceptions = True
handler = logging_loki.LokiHandler(url=url, tags={"service_name": "python"}, version="1")
handler.emitter.session.headers["X-Scope-OrgID"] = tenant
failures = []
handler.handleError = lambda record: failures.append(sys.exc_info()[1])
logger = logging.getLogger("shop")
logger.setLevel(logging.DEBUG)
logger.addHandler(handler)
for number in range(count):
    logger.warning("line %d", number, extra={"tags": {"path": f'"{number % 2}"\n'}})
if failures:
    sys.exit(f"{len(failures)} lines failed, the last with {failures[-1]}; requests {requests.__version__}")

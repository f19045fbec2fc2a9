"""Sends a transaction with Elastic's agent for Python, which is told everything by its environment.

Usage: from_environment.py
"""

import elasticapm

client = elasticapm.Client(cloud_provider="none")
client.begin_transaction("request")
client.end_transaction("a transaction", "ok")
client.close()

"""Sends log records over kept and over new connections until a file appears; prints how many were taken."""

import os
import sys
import urllib.request
import ssl
import http.client

address, ca, token, stop = sys.argv[1:]
host, port = address.split(":")
context = ssl.create_default_context(cafile=ca)
context.check_hostname = False
body = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}'
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
kept, taken, refused = http.client.HTTPSConnection(host, int(port), context=context), 0, 0


def send(connection):
    connection.request("POST", "/v1/logs", body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


while not os.path.exists(stop):
    for connection in (kept, http.client.HTTPSConnection(host, int(port), context=context)):
        if send(connection) == 200:
            taken += 1
        else:
            refused += 1
        if connection is not kept:
            connection.close()
print(taken, refused)

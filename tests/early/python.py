"""Sends bodies that are refused while they are still being sent, and prints the status of each answer.

Usage: python.py HOST:PORT BYTES PATH CONTENT-TYPE ...

By `http.client` with a length and in chunks, and by `urllib.request`; by `requests` too, where that is installed.
"""

import http.client
import sys
import urllib.error
import urllib.request

ADDRESS, BYTES = sys.argv[1], int(sys.argv[2])
BODY = b"x" * BYTES


def by_http_client(path, headers, body, encode_chunked):
    connection = http.client.HTTPConnection(ADDRESS, timeout=60)
    connection.request("POST", path, body=body, headers=headers, encode_chunked=encode_chunked)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def by_urllib(path, headers):
    request = urllib.request.Request(f"http://{ADDRESS}{path}", data=BODY, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


def by_requests(path, headers):
    try:
        import requests
    except ImportError:
        return None
    return requests.post(f"http://{ADDRESS}{path}", data=BODY, headers=headers, timeout=60).status_code


for path, content_type in zip(sys.argv[3::2], sys.argv[4::2]):
    headers = {"Content-Type": content_type}
    chunks = (BODY[at : at + 65536] for at in range(0, BYTES, 65536))
    statuses = {
        "http.client": by_http_client(path, headers, BODY, False),
        "chunked": by_http_client(path, {**headers, "Transfer-Encoding": "chunked"}, chunks, True),
        "urllib": by_urllib(path, headers),
        "requests": by_requests(path, headers),
    }
    print(path, *sorted({str(status) for status in statuses.values() if status is not None}))

"""Sends numbered documents with the bulk helpers of a client of Elasticsearch or OpenSearch.

Usage: bulk.py elasticsearch|opensearch URL INDEX FIRST COUNT own|made [gzip]

With `own` each document has an `_id` of its own, with `made` none. Retries what was rejected for now, as its users
are told to. Prints how many documents were taken.
"""

import sys


def main() -> None:
    kind, url, index, first, count, ids = sys.argv[1:7]
    gzip = "gzip" in sys.argv[7:]
    if kind == "elasticsearch":
        from elasticsearch import Elasticsearch, helpers

        client = Elasticsearch(url, http_compress=gzip, request_timeout=30, max_retries=10, retry_on_timeout=True,
                               retry_on_status=(429, 502, 503, 504))
    else:
        from opensearchpy import OpenSearch, helpers

        client = OpenSearch(url, http_compress=gzip, timeout=30, max_retries=10, retry_on_timeout=True,
                            retry_on_status=(429, 502, 503, 504))
    assert client.ping(), "the ping is not answered"
    print(client.info()["version"]["number"], file=sys.stderr)

    def actions():
        for number in range(int(first), int(first) + int(count)):
            action = {
                "_op_type": "create",
                "_index": index,
                "_source": {"@timestamp": 1700000000000 + number, "n": number, "message": f"é \"{number}\"\n"},
            }
            if ids == "own":
                action["_id"] = f"own-{number}"
            yield action

    taken, errors = helpers.bulk(client, actions(), chunk_size=500, max_retries=10, initial_backoff=0.1,
                                 raise_on_error=True)
    assert not errors, errors
    print(taken)


main()

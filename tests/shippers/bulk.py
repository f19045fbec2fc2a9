"""Sends numbered documents with the bulk helpers of a Python client, and each part again until it is taken.

Usage: bulk.py MODULE URL INDEX COUNT own|made

MODULE is `elasticsearch` or `opensearchpy`, of whichever version is found first. With `own` each document has an
`_id` of its own and bodies are compressed, with `made` it has none. Says on standard error when it sends again for the
first time; prints the version and how often it did.
"""

import importlib
import itertools
import sys
import time

PART = 100


def main() -> None:
    name, url, index, count, ids = sys.argv[1:]
    module = importlib.import_module(name)
    # Versions differ in what they call the error of a connection and that of an answer.
    errors = tuple(getattr(module, each) for each in ("TransportError", "ApiError") if hasattr(module, each))
    kind = module.Elasticsearch if name == "elasticsearch" else module.OpenSearch
    client = kind(url, http_compress=ids == "own")
    again = 0
    while not client.ping():
        time.sleep(0.1)
    client.info()

    def action(number: int) -> dict:
        document = {"@timestamp": 1700000000000 + number, "n": number, "message": f"é \"{number}\"\n"}
        if ids == "own":
            return {"_op_type": "index", "_index": index, "_id": f"own-{number}", **document}
        return {"_op_type": "create", "_index": index, **document}

    numbers = iter(range(int(count)))
    while part := list(itertools.islice(numbers, PART)):
        while True:
            try:
                taken, failed = module.helpers.bulk(client, map(action, part), raise_on_error=True)
            except errors as error:
                if again == 0:
                    print("again after", error, file=sys.stderr, flush=True)
                again += 1
                assert again < 5000, error
                time.sleep(0.1)
            else:
                assert (taken, failed) == (len(part), []), (taken, failed)
                break
    print(module.__versionstr__, again)


importlib.import_module(f"{sys.argv[1]}.helpers")
main()

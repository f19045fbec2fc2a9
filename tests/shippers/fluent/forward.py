"""Fluentd's forward protocol as clients speak it.

forward.py ADDRESS logger COUNT             Fluentd's logger for Python, without and with nanoseconds
forward.py ADDRESS modes                    each mode with the option `chunk`, whose acknowledgement is waited for
forward.py ADDRESS bytes HEX                these bytes; prints the answer in hexadecimal digits
forward.py ADDRESS login KEY USER PASSWORD  the handshake, and a message; prints what the server says

With CA_FILE in the environment the connection uses TLS.
"""

import gzip
import hashlib
import os
import socket
import ssl
import sys

import msgpack
from fluent import sender


def connect(address):
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address.removeprefix("unix:"))
    else:
        host, port = address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
        if "CA_FILE" in os.environ:
            context = ssl.create_default_context(cafile=os.environ["CA_FILE"])
            connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.settimeout(30)
    return connection


def receive(connection):
    unpacker = msgpack.Unpacker(raw=False)
    while True:
        part = connection.recv(4096)
        if not part:
            raise SystemExit("closed")
        unpacker.feed(part)
        for message in unpacker:
            return message


def event_time(seconds, nanoseconds):
    return msgpack.ExtType(0, seconds.to_bytes(4, "big") + nanoseconds.to_bytes(4, "big"))


def record(mode, number):
    return {"log": f"{mode} {number}", "mode": mode, "number": number, "list": [1, "two", {"three": 3.5}], "none": None}


def modes(address):
    connection = connect(address)
    time = 1_700_000_000
    entries = lambda mode: [[event_time(time, number), record(mode, number)] for number in range(3)]
    packed = lambda mode: [msgpack.packb(entry) for entry in entries(mode)]
    members = [gzip.compress(entry) for entry in packed("gzip")]
    messages = [
        ["py.single", time, record("single", 0)],
        ["py.forward", entries("forward")],
        ["py.packed", b"".join(packed("packed"))],
        ["py.gzip", b"".join(members)],
        # Larger than any buffer that a connection begins with.
        ["py.large", gzip.compress(b"".join(msgpack.packb([time, record("large", number)]) for number in range(50_000)))],
    ]
    for number, message in enumerate(messages):
        options = {"chunk": f"chunk {number}", "size": 3}
        if message[0] in ("py.gzip", "py.large"):
            options["compressed"] = "gzip"
        connection.sendall(msgpack.packb(message + [options]))
        assert receive(connection) == {"ack": f"chunk {number}"}
    # Without the option there is no acknowledgement, and the connection goes on.
    connection.sendall(msgpack.packb(["py.silent", time, record("silent", 0)]))
    connection.sendall(msgpack.packb(["py.last", time, record("last", 0), {"chunk": "last"}]))
    assert receive(connection) == {"ack": "last"}


def logger(address, count):
    host, port = address.rsplit(":", 1)
    for precise in (False, True):
        client = sender.FluentSender("logger", host=host, port=int(port), nanosecond_precision=precise)
        for number in range(count):
            assert client.emit("precise" if precise else "coarse", {"message": f"number {number}", "number": number})
        client.close()


def login(address, key, user, password):
    connection = connect(address)
    kind, options = receive(connection)
    assert kind == "HELO", kind
    digest = lambda *parts: hashlib.sha512(b"".join(parts)).hexdigest()
    secret = digest(b"salt", b"client", options["nonce"], key.encode())
    login = digest(options["auth"], user.encode(), password.encode()) if options["auth"] else ""
    connection.sendall(msgpack.packb(["PING", "client", b"salt", secret, user, login]))
    kind, accepted, reason, name, proof = receive(connection)
    assert kind == "PONG", kind
    if not accepted:
        print(f"refused: {reason}")
        assert connection.recv(1) == b""
        return
    assert proof == digest(b"salt", name.encode(), options["nonce"], key.encode())
    connection.sendall(msgpack.packb(["login", 1_700_000_000, {"log": user}, {"chunk": "c"}]))
    assert receive(connection) == {"ack": "c"}
    print("accepted")


def raw(address, digits):
    connection = connect(address)
    connection.sendall(bytes.fromhex(digits))
    answer = b""
    try:
        while part := connection.recv(4096):
            answer += part
    except ConnectionResetError:
        pass
    print(answer.hex())


address, scenario, *arguments = sys.argv[1:]
if scenario == "logger":
    logger(address, int(*arguments))
else:
    {"modes": modes, "bytes": raw, "login": login}[scenario](address, *arguments)

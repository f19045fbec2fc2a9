"""Opens connections with TLS, makes a request on each, and keeps them until standard input ends."""

import socket
import ssl
import sys

host, port, ca, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
context = ssl.create_default_context(cafile=ca)
open_ones = []
for _ in range(count):
    stream = context.wrap_socket(socket.create_connection((host, port)), server_hostname="localhost")
    stream.sendall(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
    assert stream.recv(4096).startswith(b"HTTP/1.1 404")
    open_ones.append(stream)
print("open", flush=True)
sys.stdin.read()

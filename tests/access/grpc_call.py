"""Calls the logs service once over TLS: address, CA file, and then a certificate and its key, or a token."""

import sys

import grpc

address, ca, *rest = sys.argv[1:]
read = lambda name: open(name, "rb").read()
metadata = ()
if len(rest) == 2:
    credentials = grpc.ssl_channel_credentials(read(ca), read(rest[1]), read(rest[0]))
else:
    credentials = grpc.ssl_channel_credentials(read(ca))
    metadata = tuple(("authorization", f"Bearer {token}") for token in rest)
options = [("grpc.ssl_target_name_override", "localhost")]
with grpc.secure_channel(address, credentials, options) as channel:
    method = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
    # One resource with one scope with one record without a body.
    request = bytes([0x0A, 0x04, 0x12, 0x02, 0x12, 0x00])
    try:
        call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
        call(request, metadata=metadata, timeout=30)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name, error.details())

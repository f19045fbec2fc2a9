"""Ends TLS before a server that has none: tls_front.py PORT CERTIFICATE KEY CLIENT_AUTHORITY TARGET

Serves on 127.0.0.1:PORT, asks for a client's certificate of CLIENT_AUTHORITY, and passes everything on to TARGET, as
host:port.
"""

import asyncio
import ssl
import sys

port, certificate, key, authority, target = sys.argv[1:]


async def carry(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(reader, writer):
    host, port = target.split(":")
    try:
        other = await asyncio.open_connection(host, int(port))
    except OSError:
        writer.close()
        return
    await asyncio.gather(carry(reader, other[1]), carry(other[0], writer))


async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(serve, "127.0.0.1", int(port), ssl=context)
    await server.serve_forever()


asyncio.run(main())

"""A loopback proxy that adds a token to every request and changes nothing else, Host and Origin least of all.

The conformance suite sends no token, and our server answers nobody without one. Prints the port it listens on.
"""

import asyncio
import os
import sys
from urllib.parse import urlsplit

# Ours to set: one request per connection keeps this short, because nothing has to be told apart.
REPLACED = (b"authorization:", b"connection:")


async def copy(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
    except (ConnectionError, asyncio.CancelledError):
        pass


async def answer(reader, writer, server, token):
    upstream = None
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(REPLACED)]
        lines += [b"Authorization: Bearer " + token.encode(), b"Connection: close"]
        incoming, upstream = await asyncio.open_connection(server.hostname, server.port)
        upstream.write(b"\r\n".join(lines) + b"\r\n\r\n")
        sending = asyncio.create_task(copy(reader, upstream))
        await copy(incoming, writer)
        sending.cancel()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        for end in (upstream, writer):
            if end is not None:
                end.close()


async def main():
    server, token = urlsplit(os.environ["INTEROP_URL"]), os.environ["INTEROP_TOKEN"]
    listening = await asyncio.start_server(lambda r, w: answer(r, w, server, token), "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(0)

"""A door in front of a server that adds the bearer to every request and changes nothing else.

The public conformance runner sends no key, and the claims server answers nobody without one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HEAD = 65536


@asynccontextmanager
async def key_adder(host: str, port: int, secret: str) -> AsyncIterator[int]:
    """Listen on a free port of the loopback, and give it."""
    added = f"Authorization: Bearer {secret}\r\n\r\n".encode("ascii")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, ahead = await asyncio.open_connection(host, port)
        back = asyncio.create_task(_pour(behind, writer))
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                ahead.write(head.removesuffix(b"\r\n") + added)
                ahead.write(await reader.readexactly(_length(head)))
                await ahead.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            ahead.close()
            await back

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while content := await source.read(65536):
            target.write(content)
            await target.drain()
    except ConnectionError:
        pass
    finally:
        target.close()

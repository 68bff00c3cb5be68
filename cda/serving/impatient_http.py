"""HTTP connections that do not wait for ever: who opens one and says nothing, or says it a byte at a time, loses it.

The web server's own timeouts begin when a first request was answered; until then a handful of idle clients could hold
every descriptor that the process may have, and the ledger could not be opened any more.
"""

import asyncio
import resource
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 20.0  # for a whole request, head and body
MAX_CONNECTIONS = 512


def most_connections() -> int:
    """How many connections are held at once: half of the descriptors that this process may have, and no more than
    `MAX_CONNECTIONS`."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if descriptors == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, descriptors // 2)


class ImpatientHttp(H11Protocol):
    """The web server's protocol, with an end to every request that does not come."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it at once when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.abort()
        else:
            self._expect()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request; its time runs from the first to the last of them."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect()
        else:
            self._expect_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._expect_no_more()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _expect_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

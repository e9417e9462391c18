"""One connection: bytes to requests with h11, and the steps of an answer to bytes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from typing import assert_never

import h11

from mrcr_action.standin.routes import Request
from mrcr_action.standin.steps import Data, Die, Head, Reset, Step, Wait, json_reply

_CHUNK = 1 << 18
"""How many bytes are read at a time."""

_SETTLE_SECONDS = 0.02
"""Time for what was sent to reach the client before a reset throws away what has not."""

Respond = Callable[[Request], Iterator[Step]]


class _Gone(Exception):
    """The client has left, or the connection was reset by a step."""


class Connection:
    """One connection, kept alive for as many requests as the client sends."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, respond: Respond
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._respond = respond
        self._http = h11.Connection(h11.SERVER)
        self._reading: asyncio.Task[bytes] | None = None
        self._only_head = False

    async def serve(self) -> None:
        """Answer requests until either side closes."""
        try:
            while (request := await self._next_request()) is not None:
                await self._answer(self._respond(request))
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    break
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                complaint = json_reply(400, {"error": str(error)}, ("connection", "close"))
                with contextlib.suppress(_Gone, OSError):
                    await self._play(complaint)
        except (_Gone, OSError):
            pass
        finally:
            if self._reading is not None and not self._reading.cancel():
                self._reading.exception()  # or asyncio complains that nobody asked
            self._writer.close()

    async def _next_request(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._read())
            elif isinstance(event, h11.Request):
                head = event
                self._only_head = event.method == b"HEAD"
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = dict(head.headers)
                return Request(
                    method=head.method.decode(),
                    path=head.target.decode("latin-1").partition("?")[0],
                    authorization=headers.get(b"authorization", b"").decode("latin-1"),
                    body=bytes(body),
                )
            else:
                return None

    async def _read(self) -> bytes:
        """The next bytes of the client; a read that was under way is taken up again."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._reader.read(_CHUNK))
        data = await self._reading
        self._reading = None
        return data

    async def _answer(self, steps: Iterator[Step]) -> None:
        """Play the steps, and stop as soon as the client hangs up."""
        playing = asyncio.create_task(self._play(steps))
        if self._reading is None:
            self._reading = asyncio.create_task(self._reader.read(_CHUNK))
        try:
            await asyncio.wait({playing, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                data = await self._read()
                if not data:
                    raise _Gone
                self._http.receive_data(data)  # the next request came early: it has to wait
            await playing
        finally:
            if not playing.done():
                playing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await playing

    async def _play(self, steps: Iterator[Step]) -> None:
        try:
            for step in steps:
                match step:
                    case Head():
                        await self._send(_response(step))
                    case Data() if self._only_head:
                        pass
                    case Data():
                        await self._send(h11.Data(data=step.body))
                        await asyncio.sleep(0)  # let the others have their turn
                    case Wait():
                        await asyncio.sleep(step.seconds)
                    case Reset():
                        await self._reset()
                    case Die():
                        await asyncio.sleep(_SETTLE_SECONDS)
                        sys.stderr.write("stand-in: dying in the middle of an answer (a fault)\n")
                        sys.stderr.flush()
                        os._exit(step.exit_code)
                    case _:
                        assert_never(step)
            await self._send(h11.EndOfMessage())
        finally:
            close = getattr(steps, "close", None)
            if close is not None:
                close()

    async def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def _reset(self) -> None:
        await asyncio.sleep(_SETTLE_SECONDS)
        connection = self._writer.get_extra_info("socket")
        # Lingering for no time at all makes the kernel send RST where it would send FIN.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        raise _Gone


def _response(head: Head) -> h11.Response:
    headers = [(name.encode(), value.encode()) for name, value in head.headers]
    return h11.Response(
        status_code=head.status, headers=[*headers, (b"server", b"mrcr-action stand-in")]
    )

"""Bodies of requests, within their limits."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive

from cqels_py.errors import DataError, Place
from cqels_py.service.failures import ServiceError, TooLarge, TooSlow, UnknownMediaType
from cqels_py.service.limits import MIB, Limits

_MEMBERS = 10_000
"""Of a compressed body: each takes time to begin, however short it is."""


async def body_of(headers: Mapping[str, str], receive: Receive, limits: Limits) -> bytes:
    """The body, decompressed. TooLarge; TooSlow; UnknownMediaType for an encoding that is not known; DataError for a damaged one."""
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", "deflate"):
        raise UnknownMediaType(f"the Content-Encoding is gzip or deflate, not {coding!r}")
    length = headers.get("content-length", "0")
    if length.isdigit() and len(length) < 20 and int(length) > limits.body:
        raise _too_large(limits)
    unpacking = None if coding == "identity" else _Unpacking()
    parts: list[bytes] = []
    sent = size = 0
    arriving = _Arriving(receive, limits)
    try:
        while arriving.more:
            chunk = await arriving.next()
            sent += len(chunk)
            if sent > limits.body:
                raise _too_large(limits)
            if unpacking is not None and chunk:
                chunk = unpacking.unpacked(chunk, limits.decompressed - size + 1)
            size += len(chunk)
            if unpacking is not None and size > limits.decompressed:
                raise TooLarge(
                    f"a body has at most {limits.decompressed // MIB} MiB after decompression (--max-decompressed)"
                )
            parts.append(chunk)
    except zlib.error as error:
        raise DataError(f"the body is not {coding}: {error}") from None
    if unpacking is not None and sent and not unpacking.at_end:
        raise DataError(f"the body ends in the middle of its {coding} data")
    return b"".join(parts)


class _Arriving:
    """The parts of a body as they come."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._now = asyncio.get_running_loop().time
        self._begun = self._now()
        self._sent = 0
        self.more = True

    async def next(self) -> bytes:
        """The next part. TooSlow for a body that stops, or comes so slowly that it might never end."""
        limits = self._limits
        by_rate = self._begun + limits.body_grace + self._sent / limits.body_rate
        try:
            async with asyncio.timeout_at(min(self._now() + limits.body_silence, by_rate)):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow(
                f"a body has no {limits.body_silence:g} s without a byte, and {limits.body_rate:g} bytes a second on average after "
                f"{limits.body_grace:g} s: send it in smaller parts",
                headers={"Connection": "close"},
            ) from None
        if message["type"] == "http.disconnect":
            raise ServiceError("the client has gone")
        self.more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        self._sent += len(chunk)
        return chunk


class _Unpacking:
    """Decompresses a body, which may have several members, one after another, as files of gzip may."""

    def __init__(self) -> None:
        self._member = self._begun()
        self._members = 1

    @staticmethod
    def _begun() -> Any:
        return zlib.decompressobj(zlib.MAX_WBITS | 32)

    @property
    def at_end(self) -> bool:
        """Is the last member complete?"""
        return bool(self._member.eof)

    def unpacked(self, chunk: bytes, most: int) -> bytes:
        """The bytes that follow, at most so many: with these the body is too large. TooLarge for too many members."""
        found: list[bytes] = []
        while chunk and most > 0:
            if self._member.eof:
                chunk = chunk.lstrip(b"\0")
                if not chunk:
                    # Files are padded with zeros.
                    break
                self._members += 1
                if self._members > _MEMBERS:
                    raise TooLarge(f"a compressed body has at most {_MEMBERS:,} members: compress it as one")
                self._member = self._begun()
            found.append(self._member.decompress(chunk, most))
            most -= len(found[-1])
            chunk = self._member.unused_data
        return b"".join(found)


def media_type(headers: Mapping[str, str]) -> str:
    """The media type of the body, without parameters. UnknownMediaType for a character set other than UTF-8."""
    kind, _, parameters = headers.get("content-type", "").partition(";")
    for each in parameters.split(";") if parameters else ():
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
            raise UnknownMediaType(f"bodies are in UTF-8, not {value.strip()}")
    return kind.strip().lower()


def text_of(body: bytes) -> str:
    """A body that is a text. DataError if it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise DataError(f"the byte 0x{body[error.start]:02x} is not UTF-8", Place(line)) from None


def _too_large(limits: Limits) -> TooLarge:
    return TooLarge(f"a body has at most {limits.body // MIB} MiB (--max-body): send it in parts")

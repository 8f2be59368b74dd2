"""Whether a compressed chunk decodes to more than was declared, found without decoding all of it."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

DEFLATE_RATIO = 1032  # bytes that a byte of deflate decodes to, at most
HEADER_BYTES = 32  # of a chunk, which tell the size of zstd, blosc and lz4
STEP_BYTES = 2**20  # that are decoded at a time
UNBOUNDED = {"bz2": bz2.BZ2Decompressor, "lzma": lzma.LZMADecompressor}  # a byte of which may be thousands, or millions


def exceeds_by_header(codec: str, header: bytes, limit: int) -> bool:
    """Whether the first bytes of a chunk announce more than `limit` bytes; False if they announce nothing."""
    if codec == "zstd":
        return _read_zstd_size(header) > limit
    if codec in ("blosc", "lz4"):
        place = 4 if codec == "blosc" else 0
        return int.from_bytes(header[place : place + 4], "little") > limit
    return False


def states_size(codec: str, header: bytes) -> bool:
    """Whether a chunk says to how many bytes it decodes; a zstd frame that was written as a stream does not."""
    return codec in ("blosc", "lz4") or (codec == "zstd" and (len(header) < 5 or header[4] >> 5 > 0))


def _read_zstd_size(header: bytes) -> int:
    """Size of the content of a zstd frame (RFC 8878, section 3.1.1.1); 0 if it is not stated."""
    if header[:4] != b"\x28\xb5\x2f\xfd" or len(header) < 5:
        return 0
    flags = header[4]
    single, kind = flags >> 5 & 1, flags >> 6
    start = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
    size = (single, 2, 4, 8)[kind]
    return int.from_bytes(header[start : start + size], "little") + (256 if kind == 1 else 0)


def exceeds_by_inflating(stored: bytes, limit: int) -> bool:
    """Whether zlib or gzip data decode to more than `limit` bytes; data that are neither do not."""
    decoder, total = zlib.decompressobj(zlib.MAX_WBITS | 32), 0
    try:
        while stored and not decoder.eof and total <= limit:
            total += len(decoder.decompress(stored, STEP_BYTES))
            stored = decoder.unconsumed_tail
    except zlib.error:
        return False
    return total > limit


def exceeds_by_decoding(codec: str, stored: bytes, limit: int) -> bool:
    """Whether zstd, bz2 or lzma data decode to more than `limit` bytes; damaged data do not."""
    total = 0
    with suppress(OSError, EOFError, lzma.LZMAError):
        for size in _decode_zstd(stored) if codec == "zstd" else _decode_streams(UNBOUNDED[codec], stored):
            total += size
            if total > limit:
                return True
    return False


def _decode_zstd(stored: bytes) -> Iterator[int]:
    """Sizes of pieces of the content."""
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as stream:
        while found := len(stream.read(STEP_BYTES)):
            yield found


def _decode_streams(make_decoder: Callable[[], Any], stored: bytes) -> Iterator[int]:
    """Sizes of pieces of the content, of one stream after another."""
    while stored:
        decoder = make_decoder()
        while not decoder.eof:
            yield len(decoder.decompress(stored, STEP_BYTES))
            if decoder.needs_input and not decoder.eof:
                return
            stored = b""
        stored = decoder.unused_data

"""Whether a compressed chunk decodes to more than was declared, found without decoding all of it."""

import zlib

DEFLATE_RATIO = 1032  # bytes that a byte of deflate decodes to, at most
HEADER_BYTES = 32  # of a chunk, which tell the size of zstd, blosc and lz4


def exceeds_by_header(codec: str, header: bytes, limit: int) -> bool:
    """Whether the first bytes of a chunk announce more than `limit` bytes; False if they announce nothing."""
    if codec == "zstd":
        return _read_zstd_size(header) > limit
    if codec in ("blosc", "lz4"):
        place = 4 if codec == "blosc" else 0
        return int.from_bytes(header[place : place + 4], "little") > limit
    return False


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
            total += len(decoder.decompress(stored, 2**20))
            stored = decoder.unconsumed_tail
    except zlib.error:
        return False
    return total > limit

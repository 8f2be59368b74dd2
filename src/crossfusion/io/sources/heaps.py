"""A look at an HDF5 file before the library gets it: damage of which it would never come to an end.

Names in groups of the older format lie in a heap, whose free pieces are a list; where damage makes that list a ring,
the library follows it for ever and fills the memory. Texts of any length lie in collections of objects, one after the
other; where one takes no space, the library never gets to the next. Everything else that is wrong with a file, the
library says itself. The layout is that of the HDF5 File Format Specification, version 3, sections II.A, III.A to III.E
and IV.A.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MANY = 10_000  # objects of a file that are looked at
LONGEST = 2**20  # bytes of a header that are looked at
END = 1  # the offset that ends a list
LINK, ATTRIBUTE, CONTINUED, GROUP = 0x06, 0x0C, 0x10, 0x11  # messages of an object's header
EMPTY = "a collection of texts has one that takes no space"
VARYING = 9  # the class of types whose values lie in collections


@dataclass
class _File:
    """Numbers in a file, whose widths it says itself."""

    file: IO[bytes]
    base: int = 0
    offset: int = 8  # bytes of an address
    length: int = 8  # bytes of a length

    def read(self, place: int, size: int) -> bytes:
        """Bytes from an address; fewer, or none, where the file has no more."""
        if place + self.base >= 2**63:
            return b""
        self.file.seek(self.base + place)
        return self.file.read(min(size, LONGEST))

    def address(self, data: bytes, at: int = 0) -> int:
        """Address in some bytes."""
        return _number(data[at : at + self.offset])


def check_heaps(file: IO[bytes]) -> None:
    """Refuse a file whose groups or attributes the library would never be done with."""
    found = _root(file)
    if found is None:
        return
    content, root = found
    waiting, seen, collections = [root], {root}, set[int]()
    while waiting and len(seen) < MANY:
        for kind, body in _messages(content, waiting.pop()):
            members: Iterable[int] = ()
            if kind == GROUP:
                _check_heap(content, content.address(body, content.offset))
                members = _entries(content, content.address(body))
            elif kind == LINK:
                members = _linked(content, body)
            elif kind == ATTRIBUTE:
                used = set(_collections(content, body)) - collections
                collections |= used
                _check_collections(content, used)
            fresh = set(members) - seen
            waiting += fresh
            seen |= fresh


def check_collections(memory: NDArray[np.uint8], places: NDArray[np.int64], length: int = 8) -> None:
    """Refuse collections of texts, at these places, that the library would never be done with.

    All of them are gone through side by side, since there may be very many.
    """
    head = 8 + length
    places = places[(places >= 0) & (places <= len(memory) - 2 * head)]
    starts = memory[places[:, None] + np.arange(head)]
    begun = (starts[:, :4] == np.frombuffer(b"GCOL", np.uint8)).all(axis=1)
    at, ends = places[begun] + -(-head // 8) * 8, places[begun] + _lengths(starts[begun], len(memory))
    while len(at):
        heads = memory[at[:, None] + np.arange(head)]
        used = heads[:, :2].any(axis=1)
        steps = _lengths(heads, 2**64 - 1, np.uint64)
        steps = np.where(used, head + (steps + np.uint64(7)) // np.uint64(8) * np.uint64(8), steps)
        if not steps.all():
            raise ValueError(EMPTY)
        at = at + np.minimum(steps, np.uint64(len(memory))).astype(np.int64)
        going = at + head <= np.minimum(ends, len(memory))
        at, ends = at[going], ends[going]


def _lengths(heads: NDArray[np.uint8], most: int, dtype: Any = np.int64) -> NDArray[Any]:
    """Lengths that follow the first eight bytes, none of them more than `most`."""
    found = heads[:, 8:].copy().view(f"<u{heads.shape[1] - 8}").ravel().astype(np.uint64)
    return np.minimum(found, np.uint64(most)).astype(dtype)


def _root(file: IO[bytes]) -> tuple[_File, int] | None:
    """The file, and the address of the header of its root group; None of what the library will not open."""
    start = 0
    while True:
        file.seek(start)
        block = file.read(128)
        if block.startswith(SIGNATURE):
            break
        if len(block) < len(SIGNATURE) or start > 2**40:
            return None
        start = max(512, 2 * start)
    version, old = block[8:9], block[8:9] in (b"\0", b"\1")
    offset, length = block[13:15] if old else block[9:11]
    if offset not in (2, 4, 8) or length not in (2, 4, 8):
        return None
    first = {b"\0": 24, b"\1": 28}.get(version, 12)
    place = first + (5 if old else 3) * offset
    return _File(file, start, offset, length), _number(block[place : place + offset])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _messages(content: _File, header: int) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each message of an object's header, of the older or the newer format."""
    start = content.read(header, 64)
    if len(start) < 16 or (start[0] != 1 and not start.startswith(b"OHDR")):
        return
    if start[0] == 1:
        blocks, fixed, extra = [(header + 16, _number(start[8:12]))], 8, 0
    else:
        first = 6 + 16 * bool(start[5] & 0x20) + 4 * bool(start[5] & 0x10)
        width = 1 << (start[5] & 3)
        blocks = [(header + first + width, _number(start[first : first + width]))]
        fixed, extra = 4 + 2 * bool(start[5] & 4), 4
    seen = {header}
    while blocks:
        place, size = blocks.pop()
        data, at = content.read(place, size), 0
        while at + fixed <= len(data):
            kind = _number(data[at : at + 2]) if fixed == 8 else data[at]
            length = _number(data[at + 2 : at + 4] if fixed == 8 else data[at + 1 : at + 3])
            body = data[at + fixed : at + fixed + length]
            yield kind, body
            next_place = content.address(body)
            if kind == CONTINUED and next_place not in seen and len(seen) < MANY:
                seen.add(next_place)
                size = _number(body[content.offset : content.offset + content.length])
                blocks.append((next_place + extra, size - 2 * extra))  # the newer ones have a signature and a checksum
            at += fixed + length


def _linked(content: _File, body: bytes) -> list[int]:
    """Address of the header that a link of the newer format leads to; of links to elsewhere, none."""
    if len(body) < 2:
        return []
    flags, at = body[1], 2
    if flags & 8 and body[at : at + 1] != b"\0":
        return []
    at += bool(flags & 8) + 8 * bool(flags & 4) + bool(flags & 16)
    width = 1 << (flags & 3)
    return [content.address(body, at + width + _number(body[at : at + width]))]


def _collections(content: _File, body: bytes) -> list[int]:
    """Addresses of the collections that an attribute's values lie in."""
    if len(body) < 8:
        return []
    sizes = [_number(body[at : at + 2]) for at in (2, 4, 6)]  # of its name, type and extent
    if body[0] == 1:
        sizes = [-(-size // 8) * 8 for size in sizes]
    kind = 8 + (body[0] == 3) + sizes[0]
    if body[kind : kind + 1] and body[kind] & 15 == VARYING:
        values, width = body[kind + sizes[1] + sizes[2] :], content.offset + 8
        return [content.address(values, at + 4) for at in range(0, len(values) - width + 1, width)]
    return []


def _check_collections(content: _File, places: Iterable[int]) -> None:
    for place in places:
        start = content.read(place, 8 + content.length)
        if not start.startswith(b"GCOL"):
            continue
        size, head = _number(start[8:]), 8 + content.length
        data, at = content.read(place, size), -(-head // 8) * 8
        while at + head <= len(data):
            length = _number(data[at + 8 : at + head])
            step = length if data[at : at + 2] == b"\0\0" else head + -(-length // 8) * 8
            if step % 2**64 == 0:
                raise ValueError(EMPTY)
            at += step


def _entries(content: _File, tree: int) -> Iterator[int]:
    """Addresses of the headers of a group's members."""
    waiting, seen = [tree], {tree}
    while waiting and len(seen) < MANY:
        place = waiting.pop()
        start = content.read(place, 8)
        count = _number(start[6:8])
        if start.startswith(b"TREE"):
            first, step = 8 + 2 * content.offset + content.length, content.length + content.offset
            nodes = set(_addresses(content, place + first, count, step)) - seen
            waiting += nodes
            seen |= nodes
        elif start.startswith(b"SNOD"):
            step = 2 * content.offset + 24
            yield from _addresses(content, place + 8 + content.offset, count, step)


def _addresses(content: _File, place: int, count: int, step: int) -> list[int]:
    data = content.read(place, count * step)
    return [_number(data[at : at + content.offset]) for at in range(0, len(data), step)]


def _check_heap(content: _File, heap: int) -> None:
    start = content.read(heap, 8 + 2 * content.length + content.offset)
    if not start.startswith(b"HEAP"):
        return
    size, free = (_number(start[at : at + content.length]) for at in (8, 8 + content.length))
    place, seen = _number(start[8 + 2 * content.length :]), set()
    while free != END and free < size:
        if free in seen:
            raise ValueError("the free space of a group leads back to itself")
        seen.add(free)
        entry = content.read(place + free, content.length)
        if len(entry) < content.length:
            return
        free = _number(entry)

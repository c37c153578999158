"""A name server (RFC 1035, UDP) that answers late, and drops what is too much for it."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from habits import address
from loop import Loop

IPV4_ADDRESS = 1  # The record types of RFC 1035, section 3.2.2.
TIME_TO_LIVE = 300


class NameServer:
    """Answers A with the address that the name tells, AAAA with no records, and an unknown name with NXDOMAIN."""

    def __init__(self, loop: Loop, where: str, kinds: List[str], delay: float, most_at_once: Optional[int]) -> None:
        self._loop = loop
        self._kinds = kinds
        self._delay = delay
        self._most_at_once = most_at_once
        self._pending = 0
        self._queries: "Counter[str]" = Counter()
        self._dropped = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.setblocking(False)
        self._socket.bind((where, 53))
        loop.watch(self._socket.fileno(), self._receive)

    def report(self) -> Dict[str, Any]:
        return {"queries": sum(self._queries.values()), "names": len(self._queries), "dropped": self._dropped}

    def _receive(self) -> None:
        while True:
            try:
                query, sender = self._socket.recvfrom(4096)
            except BlockingIOError:
                return
            question, end = question_of(query)
            self._queries[question] += 1
            if self._most_at_once is not None and self._pending >= self._most_at_once:
                self._dropped += 1
                continue
            self._pending += 1
            self._loop.after(self._delay, self._answer, query, end, question, sender)

    def _answer(self, query: bytes, end: int, name: str, sender: Tuple[str, int]) -> None:
        self._pending -= 1
        found = address(self._kinds, name)
        kind = int.from_bytes(query[end - 4 : end - 2], "big")
        records = b""
        if found is not None and kind == IPV4_ADDRESS:
            # Its name is the one at offset 12, that of the question (section 4.1.4).
            records = struct.pack(">HHHIH", 0xC00C, IPV4_ADDRESS, 1, TIME_TO_LIVE, 4) + found
        flags = 0x8180 if found is not None else 0x8183  # A response, recursion available; the latter is NXDOMAIN.
        head = query[:2] + struct.pack(">HHHHH", flags, 1, 1 if records else 0, 0, 0)
        self._socket.sendto(head + query[12:end] + records, sender)


def question_of(query: bytes) -> Tuple[str, int]:
    """The name that is asked for, in lower case, and where the question ends."""
    labels: List[str] = []
    at = 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
        at += 1 + query[at]
    return ".".join(labels), at + 5

"""The plan that a URL gives the origin: its path is the content, its query the behaviour."""

from __future__ import annotations

import re
import time
import zlib
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Dict, List, Optional, Tuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from body import Body, compressed, zeros
from images import MAKERS, Picture, image

# The places at which an exchange can be held or broken: before the status line, in the middle of the headers, after the headers,
# after that many bytes of the body, or after the last of them.
START, MID_HEADERS, HEADERS, END = -3, -2, -1, 1 << 62
PLACES = {"start": START, "mid-headers": MID_HEADERS, "headers": HEADERS, "end": END}

ENDLESS = 1 << 60


class BadPlan(ValueError):
    """The URL asks for something that is not on the menu."""


@dataclass
class Plan:
    """One exchange to be. `requests` counts those for the same URL, this one included."""

    path: str
    media_type: str = "application/octet-stream"
    body: Optional[Body] = None  # None for the echo, which depends on the request
    holds: List[Tuple[int, str]] = field(default_factory=list)
    delay: float = 0.0
    drip: int = 0
    drip_gate: str = ""
    drip_delay: float = 0.0
    broken_at: Optional[int] = None
    reset: bool = False
    status: int = 200
    reason: str = ""
    version: str = "HTTP/1.1"
    length: str = ""  # a number, `none`, or nothing for the truth
    chunked: bool = False
    chunk: int = 1 << 16
    endless: bool = False
    endless_headers: bool = False
    raw: Optional[bytes] = None
    location: str = ""
    headers: List[Tuple[str, str]] = field(default_factory=list)
    informational: List[int] = field(default_factory=list)
    etag: str = ""
    last_modified: str = ""
    ranges: str = "on"
    conditional: bool = True
    require: Tuple[str, str] = ("", "")
    close: bool = False

    @property
    def misbehaves(self) -> bool:
        return self.status >= 400 or self.broken_at is not None or self.raw is not None or bool(self.length)

    def behave(self) -> None:
        """Take back whatever `fail` limits to the first requests."""
        self.status, self.reason, self.length = 302 if self.location else 200, "", ""
        self.broken_at, self.reset, self.raw = None, False, None
        self.endless = self.endless_headers = False
        self.headers = [(name, value) for name, value in self.headers if name != "Retry-After"]


def plan(target: str, requests: int, request_headers: Dict[str, str]) -> Plan:
    """Read a request target, which may be in absolute form."""
    parts = urlsplit(target)
    made = Plan(path=unquote(parts.path))
    query: List[Tuple[str, str]] = parse_qsl(parts.query, keep_blank_values=True, encoding="latin-1")
    wishes: Dict[str, str] = {}
    for name, value in query:
        if name.startswith(("x-", "_")):
            continue
        if name in REPEATED:
            REPEATED[name](made, value)
        elif name in SINGLE:
            if name in wishes:
                raise BadPlan(f"`{name}` must be there only once")
            wishes[name] = value
        else:
            raise BadPlan(f"`{name}` must be the name of a behaviour")
    try:
        content(made, wishes, request_headers)
        manners(made, wishes)
        redirection(made, wishes, parts.path, parts.query, query)
    except (ValueError, KeyError) as error:
        raise BadPlan(f"{error}") from error
    if "fail" in wishes:
        if requests > int(wishes["fail"]):
            made.behave()
        elif not made.misbehaves:
            made.status = 503
    return made


def content(made: Plan, wishes: Dict[str, str], request_headers: Dict[str, str]) -> None:
    """The path: what is served."""
    kind, _, rest = made.path.strip("/").partition("/")
    size = int(wishes["bytes"]) if "bytes" in wishes else None
    if kind == "image":
        made.media_type, made.body = picture(rest, size, wishes, request_headers)
    elif kind == "echo":
        made.media_type = "application/json"
    elif kind in TEXTS:
        made.media_type, text = TEXTS[kind]
        missing = 0 if size is None else size - len(text)
        if missing < 0:
            raise BadPlan(f"of this body there are at least {len(text)} bytes")
        made.body = Body([text, (b" " * 4096, missing // 4096), b" " * (missing % 4096)])
    elif kind == "zeros":
        made.body = Body(zeros(size or 0))
    else:
        raise BadPlan(f"nothing is served at /{kind}")
    if "encoding" in wishes and made.body is not None:
        made.body = compressed(made.body, wishes["encoding"])
        made.headers.append(("Content-Encoding", wishes["encoding"].replace("raw-", "")))
    made.media_type = wishes.get("type", made.media_type)


def picture(
    name: str, size: Optional[int], wishes: Dict[str, str], request_headers: Dict[str, str]
) -> Tuple[str, Body]:
    stem, _, extension = name.rpartition("/")[2].rpartition(".")
    if extension not in MAKERS or not stem.isdigit():
        raise BadPlan(f"no image `{name}`; one is called like 17.png, with {', '.join(MAKERS)}")
    number = int(stem)
    if "by" in wishes:
        # Another picture for each value of these request headers: what one user gets, another must not.
        values = [request_headers.get(header, "") for header in wishes["by"].lower().split(",")]
        number = zlib.crc32(f"{number}\0{values}".encode()) if any(values) else number
    wanted = Picture(
        number=number,
        width=int(wishes.get("width", "32")),
        height=int(wishes.get("height", "24")),
        size=size,
        frames=int(wishes.get("frames", "1")),
        orientation=int(wishes.get("orientation", "1")),
        progressive="progressive" in wishes,
    )
    return image(extension, wanted)


def manners(made: Plan, wishes: Dict[str, str]) -> None:
    """The query: how it is served."""
    made.delay = int(wishes.get("delay", "0")) / 1000
    made.drip = int(wishes.get("drip", "0"))
    made.drip_gate = wishes.get("drip-gate", "")
    made.drip_delay = int(wishes.get("drip-delay", "0" if made.drip_gate else "10")) / 1000
    for name in ("close", "reset", "truncate"):
        if name in wishes and wishes[name] != "after":
            made.broken_at = place(wishes[name])
            made.reset = name == "reset"
    made.close = wishes.get("close") == "after"
    made.status = int(wishes.get("status", "200"))
    made.reason = wishes.get("reason", "")
    made.version = "HTTP/" + wishes.get("http", "1.1")
    made.length = wishes.get("length", "")
    made.chunked = "chunked" in wishes
    made.chunk = int(wishes.get("chunked") or made.chunk)
    made.endless = "endless" in wishes
    made.endless_headers = "endless-headers" in wishes
    if made.endless and made.body is not None:
        made.body = Body([made.body.read(0, made.body.length), *zeros(ENDLESS)])
    if "garbage" in wishes:
        made.raw = b"\x16\x03\x01 this is no HTTP at all \0\xff\r\n\r\n" * 10
    if "raw" in wishes:
        made.raw = wishes["raw"].encode("latin-1")
    made.etag = entity_tag(wishes.get("etag", ""))
    made.last_modified = date(wishes.get("last-modified", ""))
    made.ranges = wishes.get("ranges", "on")
    if made.ranges not in ("on", "off", "shifted", "blind"):
        raise BadPlan("`ranges` is on, off, shifted or blind")
    made.conditional = wishes.get("conditional", "on") == "on"
    made.informational = [int(status) for status in wishes.get("informational", "").split(",") if status]
    if "require" in wishes:
        name, _, value = wishes["require"].partition(":")
        made.require = name.strip().lower(), value.strip()
    if wishes.get("date") != "none":
        made.headers.append(("Date", date(wishes.get("date", "+0"))))
    for name, header in PLAIN.items():
        if name in wishes:
            made.headers.append((header, date(wishes[name]) if name in DATED else wishes[name]))
    if "header-bytes" in wishes:
        made.headers.append(("X-Padding", "a" * int(wishes["header-bytes"])))


def redirection(made: Plan, wishes: Dict[str, str], path: str, text: str, query: List[Tuple[str, str]]) -> None:
    if "circle" in wishes:
        made.location = f"{path}?{text}"
    elif int(wishes.get("hops", "0")) > 0:
        left = [(name, str(int(value) - 1) if name == "hops" else value) for name, value in query]
        made.location = path + "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in left)
    elif "redirect" in wishes:
        made.location = wishes["redirect"]
    if made.location:
        made.status = int(wishes.get("status", "302"))
    elif "hops" in wishes:
        made.status = 200


def place(name: str) -> int:
    return PLACES[name] if name in PLACES else int(name)


def entity_tag(name: str) -> str:
    if not name:
        return ""
    return f'W/"{name[2:]}"' if name.startswith("W/") else f'"{name}"'


def date(value: str) -> str:
    """A date as it stands, or that many seconds from now: `+60`, `-3600`. (A plus sign in a query is a blank.)"""
    if re.fullmatch(r"[ +-]\d+", value):
        return formatdate(time.time() + int(value), usegmt=True)
    return value


def add_hold(made: Plan, value: str) -> None:
    gate, _, where = value.partition("@")
    made.holds.append((place(where or "start"), gate))


def add_header(made: Plan, value: str) -> None:
    name, _, text = value.partition(":")
    made.headers.append((name.strip(), text.strip()))


def add_cookie(made: Plan, value: str) -> None:
    made.headers.append(("Set-Cookie", value))


REPEATED = {
    "hold": add_hold,
    "header": add_header,
    "cookie": add_cookie,
}

# Names of query items that are sent as they are, each under its header.
PLAIN = {
    "cache-control": "Cache-Control",
    "vary": "Vary",
    "age": "Age",
    "expires": "Expires",
    "retry-after": "Retry-After",
    "retry-after-date": "Retry-After",
}

DATED = ("expires", "retry-after-date")

SINGLE = set(PLAIN) | set(
    "bytes width height frames orientation progressive by encoding type delay drip drip-gate drip-delay close reset"
    " truncate status reason http length chunked endless endless-headers garbage raw etag last-modified ranges"
    " conditional informational require date header-bytes circle hops redirect fail".split()
)

TEXTS = {
    "html": ("text/html; charset=utf-8", b"<!DOCTYPE html>\n<html><head><title>Not found</title></head></html>\n"),
    "json": ("application/json", b'{"error": "this is not an image"}\n'),
    "text": ("text/plain", b"Nothing to see here.\n"),
    "garbage": ("image/png", bytes(range(128, 256)) * 4),
    "empty": ("image/png", b""),
}

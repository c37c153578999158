"""From a request and a plan to a status line, headers and the part of the body that goes with them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Dict, List, Optional, Tuple

from body import Body
from plan import Plan

Headers = List[Tuple[str, str]]


@dataclass
class Request:
    """A request as it came; header names are lower-case in `fields`, as sent in `headers`."""

    method: str
    target: str
    version: str
    headers: Headers
    body: bytes = b""

    @property
    def fields(self) -> Dict[str, str]:
        joined: Dict[str, str] = {}
        for name, value in self.headers:
            key = name.lower()
            joined[key] = f"{joined[key]}, {value}" if key in joined else value
        return joined


@dataclass
class Answer:
    status: int
    head: bytes
    body: Body
    chunked: bool
    keep_alive: bool


def answer(request: Request, plan: Plan, connection: int) -> Answer:
    fields = request.fields
    body = plan.body if plan.body is not None else echo(request, connection)
    headers: Headers = list(plan.headers)
    status = plan.status
    if plan.etag:
        headers.append(("ETag", plan.etag))
    if plan.last_modified:
        headers.append(("Last-Modified", plan.last_modified))
    if plan.location:
        headers.append(("Location", plan.location))
        body = Body([b"<html>Moved</html>\n"])
    if plan.require[0] and fields.get(plan.require[0]) != plan.require[1]:
        status, body = 401, Body([b"<html>Who are you?</html>\n"])
    elif status == 200 and plan.conditional and not_modified(fields, plan):
        status = 304
    elif status == 200 and plan.ranges != "off":
        headers.append(("Accept-Ranges", "bytes"))
        status, body, extra = ranged(fields, plan, body)
        headers += extra
    bodiless = status in (204, 304) or 100 <= status < 200
    if plan.media_type != "none" and not bodiless:
        headers.append(("Content-Type", plan.media_type))

    old = plan.version == "HTTP/1.0" or request.version == "HTTP/1.0"
    unsized = plan.length == "none" or (old and (plan.chunked or plan.endless))
    chunked = not old and not unsized and (plan.chunked or (plan.endless and not plan.length))
    keep_alive = not (old or unsized or plan.length) and fields.get("connection", "").lower() != "close"
    if bodiless:
        chunked = False
    elif chunked:
        headers.append(("Transfer-Encoding", "chunked"))
    elif not unsized:
        headers.append(("Content-Length", plan.length or str(body.length)))
    if not keep_alive:
        headers.append(("Connection", "close"))
    if bodiless or request.method == "HEAD":
        body = Body([])
    return Answer(status, head(plan, status, headers), body, chunked and request.method != "HEAD", keep_alive)


def head(plan: Plan, status: int, headers: Headers) -> bytes:
    early = "".join(f"HTTP/1.1 {code} {phrase(code)}\r\n\r\n" for code in plan.informational)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"{early}{plan.version} {status} {plan.reason or phrase(status)}\r\n{lines}\r\n".encode("latin-1")


def phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Whatever"


def echo(request: Request, connection: int) -> Body:
    """The request, as JSON."""
    told = {
        "method": request.method,
        "target": request.target,
        "version": request.version,
        "headers": request.fields,
        "connection": connection,
        "bytes": len(request.body),
    }
    return Body([json.dumps(told).encode() + b"\n"])


def not_modified(fields: Dict[str, str], plan: Plan) -> bool:
    """RFC 9110, section 13.2.2: If-None-Match decides alone when it is there; its comparison is the weak one."""
    if "if-none-match" in fields:
        tags = re.findall(r'(?:W/)?("[^"]*")', fields["if-none-match"])
        own = plan.etag.replace("W/", "", 1)
        return bool(plan.etag) and (own in tags or fields["if-none-match"].strip() == "*")
    if "if-modified-since" in fields and plan.last_modified:
        since, last = seconds(fields["if-modified-since"]), seconds(plan.last_modified)
        return since is not None and last is not None and last <= since
    return False


def ranged(fields: Dict[str, str], plan: Plan, body: Body) -> Tuple[int, Body, Headers]:
    """One range of bytes, when If-Range allows it: a strong entity tag or the very date (RFC 9110, section 13.1.5)."""
    whole: Tuple[int, Body, Headers] = 200, body, []
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", fields.get("range", ""))
    if wanted is None or wanted.group(0) == "bytes=-":
        return whole
    guard = fields.get("if-range")
    if guard is not None and plan.ranges != "blind":
        strong = plan.etag if not plan.etag.startswith("W/") else ""
        if guard not in [validator for validator in (strong, plan.last_modified) if validator]:
            return whole
    first, last = wanted.groups()
    if first:
        start, stop = int(first), int(last) + 1 if last else body.length
    else:
        start, stop = max(0, body.length - int(last)), body.length
    stop = min(stop, body.length)
    if start >= stop:
        return 416, Body([]), [("Content-Range", f"bytes */{body.length}")]
    if plan.ranges == "shifted":
        start = max(0, start - 10)
    return 206, body.cut(start, stop), [("Content-Range", f"bytes {start}-{stop - 1}/{body.length}")]


def seconds(date: str) -> Optional[float]:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None

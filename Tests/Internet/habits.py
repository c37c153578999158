"""How hosts behave. All hosts of one kind share a habit; a host is named KIND-NUMBER.test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional

MOST_HOSTS = 65_536
"""Maximum number of hosts of one kind: an address has two bytes for the number."""
CLOSED_PORT = 81
"""Nobody listens there: a URL with this port is one of a host that refuses connections."""


@dataclass(frozen=True)
class Habit:
    """How the hosts of a kind answer. Times are in seconds."""

    kind: str
    median: float = 0.15
    """The distribution of response times: log-normal; each path always has the same time."""
    sigma: float = 0.5
    at_once: Optional[int] = None
    """Requests that a host serves at the same time; the others wait in the order in which they came."""
    limit: Optional[int] = None
    """Requests under way above which a host answers 429, at once and without Retry-After."""
    status: int = 200
    does: str = "answer"
    """`answer`, `reset` (the connection, when the request has come) or `ignore` (the request for ever)."""
    size: int = 10_000
    """Bytes of a body, which is a PNG."""
    files: str = ""
    """A folder of bodies in place of PNGs. The extension of a file tells its media type: `.html`, or that of an image such as `.jpeg`."""
    disallow: str = ""
    """The start of the paths that robots.txt disallows."""
    crawl_delay: float = 0
    """The `Crawl-delay` of robots.txt. A request for an image that comes sooner is counted."""
    robots_tag: str = ""
    """The value of `X-Robots-Tag`, which refuses the use of the images."""

    def as_json(self) -> Dict[str, Any]:
        return asdict(self)


def host(kind: str, number: int) -> str:
    return f"{kind}-{number}.test"


def address(kinds: List[str], name: str) -> Optional[bytes]:
    """The four bytes of a host's address, 127.KIND.NUMBER, or None if there is no such host."""
    label, _, rest = name.partition(".")
    kind, _, number = label.rpartition("-")
    if rest != "test" or kind not in kinds or not number.isdigit() or int(number) >= MOST_HOSTS:
        return None
    return bytes((127, 1 + kinds.index(kind))) + int(number).to_bytes(2, "big")

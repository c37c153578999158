"""The schemas of protocol/openrpc.json with their objects in place, for tests that compare members."""

from __future__ import annotations

import json
from typing import Any

from package import ROOT

DOCUMENT: dict[str, Any] = json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii"))


def _in_place(value: Any) -> Any:
    """The value with each reference to a schema of an object replaced by that schema."""
    if isinstance(value, list):
        return [_in_place(each) for each in value]
    if not isinstance(value, dict):
        return value
    target = DOCUMENT["components"]["schemas"].get(str(value.get("$ref")).rpartition("/")[2], {})
    return _in_place(target) if "properties" in target else {name: _in_place(each) for name, each in value.items()}


SCHEMAS: dict[str, Any] = _in_place(DOCUMENT["components"]["schemas"])

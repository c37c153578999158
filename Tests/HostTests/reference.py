#!/usr/bin/env python3
"""Generates the tables and examples of protocol/reference.md from protocol/openrpc.json.

    reference.py            prints what differs; exit status 1 if anything does
    reference.py --write    rewrites the page

A generated part of the page begins with a line `<!-- KIND NAME -->` and ends with `<!-- end -->`. The text outside these
parts is written by hand. The kinds are the methods of `Parts`.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from typing import Any, Callable, Iterator

from package import ROOT

PAGE = ROOT / "protocol" / "reference.md"
PART = re.compile(r"(?ms)^<!-- (\w+)(?: (\w+))? -->\n.*?^<!-- end -->\n")
LARGEST = 1_000_000_000
"""Bounds above this one are not shown."""

Schema = dict[str, Any]


class Parts:
    """The generated parts, by their kinds."""

    def __init__(self, document: dict[str, Any], page: str) -> None:
        self._document = document
        self._schemas: dict[str, Schema] = document["components"]["schemas"]
        self._methods = {method["name"]: method for method in document["methods"]}
        self._events = {event["name"]: event for event in document["x-events"]}
        self._sections = {name for kind, name in PART.findall(page) if kind in ("members", "parameters")}

    def methods(self, _: str) -> Iterator[str]:
        """All methods, by their tags."""
        tags = {name: tag["description"] for name, tag in self._document["components"]["tags"].items()}
        yield from table("", "methods")
        for tag, description in tags.items():
            names = [name for name, method in self._methods.items() if method["tags"] == [reference("tags", tag)]]
            yield row(description.removesuffix("."), ", ".join(f"[`{name}`](#{name})" for name in names))

    def params(self, method: str) -> Iterator[str]:
        """The parameters of a method."""
        yield from self._parameters(self._resolved(self._methods[method]["x-params"]))

    def parameters(self, name: str) -> Iterator[str]:
        """The members of an object that a client sends."""
        yield from self._parameters(self._schemas[name])

    def _parameters(self, schema: Schema) -> Iterator[str]:
        yield from table("parameter", "value", "default", "meaning")
        for name, member in schema["properties"].items():
            resolved = self._resolved(member)
            default = f"`{json.dumps(resolved['default'])}`" if "default" in resolved else ""
            if name in schema.get("required", []):
                default = "required"
            yield row(f"`{name}`", self._value(member), default, resolved["description"])

    def members(self, name: str) -> Iterator[str]:
        """The members of an object that the worker sends."""
        schema = self._schemas[name]
        yield from table("member", "value", "always", "meaning")
        for member, inner in schema["properties"].items():
            always = "yes" if member in schema.get("required", []) else ""
            yield row(f"`{member}`", self._value(inner), always, self._resolved(inner)["description"])

    def errors(self, method: str) -> Iterator[str]:
        """The errors of a method."""
        kinds = [error["$ref"].rpartition("/")[2] for error in self._methods[method]["errors"]]
        yield from wrapped("Errors: " + ", ".join(f"`{kind}`" for kind in kinds) + ".")

    def example(self, method: str) -> Iterator[str]:
        """The examples of a method, as a conversation."""
        yield "```"
        for number, example in enumerate(self._methods[method]["examples"], 1):
            request: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
            if example["params"]:
                request["params"] = {param["name"]: param["value"] for param in example["params"]}
            yield "--> " + compact(request)
            yield "<-- " + compact({"jsonrpc": "2.0", "id": number, "result": example["result"]["value"]})
        yield "```"

    def events(self, _: str) -> Iterator[str]:
        """All events."""
        yield from table("event", "meaning")
        for name, event in self._events.items():
            yield row(f"[`{name}`](#{name})", event["summary"])

    def event(self, name: str) -> Iterator[str]:
        """The members of an event, unless they are those of a result, and its example."""
        schema = self._resolved(self._events[name]["params"])
        for each in schema.get("anyOf", [schema]) if name != "completed" else []:
            resolved = self._resolved(each)
            if resolved is self._schemas["ImageEvent"]:
                continue
            if "anyOf" in schema:
                yield from (resolved["description"].replace("Parameters of progress of", "Members for"), "")
            yield from self.members(next(key for key, value in self._schemas.items() if value is resolved))
            yield ""
        yield "```"
        yield "<-- " + compact({"jsonrpc": "2.0", "method": name, "params": self._events[name]["example"]})
        yield "```"

    def kinds(self, _: str) -> Iterator[str]:
        """All errors."""
        yield from table("code", "kind", "meaning", "retryable", "what to do")
        for error in self._document["x-errors"]:
            retryable = "yes" if error["retryable"] else "no"
            if "retryableStatus" in error:
                spans = (f"{span[0]} to {span[1]}" if isinstance(span, list) else str(span) for span in error["retryableStatus"])
                retryable = "status " + ", ".join(spans)
            if "retryableIf" in error:
                retryable = f"if {error['retryableIf']}"
            if "finalPhases" in error:
                retryable += "; no for " + ", ".join(f"`{phase}`" for phase in error["finalPhases"])
            yield row(str(error["code"]), f"`{error['kind']}`", error["summary"], retryable, error["action"])

    def options(self, _: str) -> Iterator[str]:
        """All options of the command line."""
        yield from table("option", "default", "meaning", "run-time name")
        for option in self._document["x-options"]:
            flag = f"`{option['flag']} {option['value']}`" if "value" in option else f"`{option['flag']}`"
            default = f"`{option['default']}`" if "default" in option else ""
            member = f"`{option['member']}`" if "member" in option else ""
            yield row(flag, default, option["summary"], member)

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            target: Any = self._document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            schema = target
        return schema

    def _value(self, schema: Schema) -> str:
        """The type of a value, in words."""
        resolved = self._resolved(schema)
        if "const" in resolved:
            return f"`{json.dumps(resolved['const'])}`"
        if "enum" in resolved:
            values = [value if isinstance(value, str) else json.dumps(value) for value in resolved["enum"]]
            return ", ".join(f"`{value}`" for value in values)
        if "oneOf" in resolved:
            return " or ".join(self._value(each) for each in resolved["oneOf"])
        kind = resolved.get("type")
        if kind == "array":
            items = self._value(resolved["items"])
            return "list of strings" if items == "string" else f"list of {items}"
        if kind == "object":
            name = schema.get("$ref", "").rpartition("/")[2]
            return f"[{name}](#{name.lower()})" if name in self._sections else "object"
        if isinstance(kind, list):
            return " or ".join(each for each in kind)
        if kind == "integer" and resolved.get("maximum", LARGEST) < LARGEST:
            return f"integer, {resolved['minimum']} to {resolved['maximum']}"
        if kind is None and "$ref" in schema:
            return {"Id": "string or integer", "PrefetchItem": "strings or objects"}[schema["$ref"].rpartition("/")[2]]
        return kind or "any"


def reference(group: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{group}/{name}"}


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def row(*cells: str) -> str:
    cells = tuple(cell.replace("|", "\\|").removesuffix(".") for cell in cells)
    cells = tuple(re.sub(r"(?<![`\w-])--[a-z][a-z-]*", r"`\g<0>`", cell) for cell in cells)
    return re.sub(r"\|  (?=\|)", "| ", "| " + " | ".join(cells) + " |")


def table(*heads: str) -> Iterator[str]:
    yield row(*heads)
    yield "| " + " | ".join("---" for _ in heads) + " |"


def wrapped(text: str, width: int = 120) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def generated(page: str, document: dict[str, Any]) -> str:
    """The page with all its generated parts as they must be."""
    parts = Parts(document, page)

    def part(match: re.Match[str]) -> str:
        kind, name = match[1], match[2] or ""
        lines: Callable[[str], Iterator[str]] = getattr(parts, kind)
        head = match[0].split("\n", 1)[0]
        return "\n".join([head, "", *lines(name), "", "<!-- end -->", ""])

    return PART.sub(part, page)


def main() -> int:
    page = PAGE.read_text()
    wanted = generated(page, json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii")))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(wanted)
        return 0
    difference = list(difflib.unified_diff(page.splitlines(), wanted.splitlines(), "reference.md", "wanted", lineterm=""))
    print("\n".join(difference))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())

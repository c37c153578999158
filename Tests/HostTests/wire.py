"""The schemas of protocol/openrpc.json, as checks on single lines of a conversation."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from package import ROOT

DRAFTS = (Draft7Validator, Draft202012Validator)


def read_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "protocol" / "openrpc.json").read_text("ascii"))
    return document


def strict(schema: Any) -> Any:
    """The schema without room for new members: a member that it does not describe is an error.

    The published document leaves results and events open, because a later worker may add members. The worker of this
    tree must send no member that its document does not describe.
    """
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(each) for name, each in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


class Wire:
    """Checks lines by the document's schemas, each with both drafts."""

    def __init__(self) -> None:
        self.document = read_document()
        self.methods = {method["name"]: method for method in self.document["methods"]}
        self.events = {event["name"]: event for event in self.document["x-events"]}
        self.errors = {error["kind"]: error for error in self.document["x-errors"]}
        self._components = {**self.document["components"], "schemas": strict(self.document["components"]["schemas"])}
        self._validators: dict[str, list[Any]] = {}

    def check(self, value: object, schema: dict[str, Any], what: str) -> None:
        """Raises AssertionError with each complaint."""
        name = json.dumps(schema, sort_keys=True)
        if name not in self._validators:
            rooted = {"allOf": [schema], "components": self._components}
            self._validators[name] = [draft(rooted) for draft in DRAFTS]
        for validator in self._validators[name]:
            complaints = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
            assert not complaints, f"{what} against {type(validator).__name__}: {complaints}\n{json.dumps(value)}"

    def check_params(self, method: str, params: object) -> None:
        self.check(params, self.methods[method]["x-params"], f"params of {method}")

    def check_result(self, method: str, result: object) -> None:
        self.check(result, self.methods[method]["result"]["schema"], f"result of {method}")

    def check_event(self, name: str, params: object) -> None:
        assert name in self.events, f"{name} is not an event of openrpc.json"
        self.check(params, self.events[name]["params"], f"event {name}")

    def check_error(self, error: dict[str, Any]) -> None:
        """The error's form, and that code, kind and retryable belong together."""
        self.check(error, {"$ref": "#/components/schemas/Error"}, "error")
        data = error["data"]
        entry = self.errors[data["kind"]]
        assert error["code"] == entry["code"], f"{data['kind']} has code {entry['code']}, not {error['code']}"
        retryable = entry["retryable"]
        for span in entry.get("retryableStatus", []):
            first, last = span if isinstance(span, list) else (span, span)
            retryable = retryable or first <= data.get("status", 0) <= last
        if data.get("phase") in entry.get("finalPhases", []):
            retryable = False
        if "retryableIf" in entry:
            retryable = entry["retryableIf"] in error["message"]
        assert data["retryable"] == retryable, f"{json.dumps(error)}: retryable is {retryable}"

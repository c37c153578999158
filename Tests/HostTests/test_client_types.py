"""The names in the Python client are those of protocol/openrpc.json."""

from __future__ import annotations

import sys
import typing
import unittest
from typing import Any

from document import SCHEMAS
from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))

import imageworker  # noqa: E402



def enum(schema: dict[str, Any]) -> set[str]:
    """The strings that a value may be, or each value of a list; empty where it may be any."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    return enum(schema["items"]) if "items" in schema else set(schema.get("enum", ()))


def properties(*names: str) -> dict[str, set[str]]:
    """The members of schemas, and the strings that each may be."""
    return {member: enum(schema) for name in names for member, schema in SCHEMAS[name].get("properties", {}).items()}


def typed_dict(kind: Any) -> dict[str, set[str]]:
    """The members of a TypedDict of imageworker.py by their names on the wire, and the strings that each may be."""
    hints = typing.get_type_hints(kind, vars(imageworker))
    return {camel_case(name): literals(hint) for name, hint in hints.items()}


def literals(hint: Any) -> set[str]:
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return set().union(*(literals(argument) for argument in typing.get_args(hint)))


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Names(unittest.TestCase):
    """The values of a member count as its name does: `{"fit": {"inside", ...}, "width": set(), ...}`."""

    def test_parameters(self) -> None:
        for name, left_out in (("LoadParams", "url"), ("PrefetchParams", "urls"), ("Transform", None)):
            with self.subTest(of=name):
                document = {member: values for member, values in properties(name).items() if member != left_out}
                self.assertEqual(typed_dict(getattr(imageworker, name)), document)

    def test_items_of_a_prefetch(self) -> None:
        string, item = SCHEMAS["PrefetchItem"]["anyOf"]
        self.assertEqual(string["type"], "string")
        self.assertEqual(typed_dict(imageworker.PrefetchItem).keys(), item["properties"].keys())

    def test_spellings_that_the_python_client_changes(self) -> None:
        for python, wire in imageworker._WIRE_NAMES.items():
            self.assertEqual(camel_case(python), wire)
        changed = {name for name in imageworker.LoadParams.__annotations__ if "_" in name}
        self.assertEqual(changed, set(imageworker._WIRE_NAMES))

    def test_members_of_an_image(self) -> None:
        document = properties("Image", "LoadResult")  # The members that only load has.
        members = {name: value for name, value in vars(imageworker.Image).items() if isinstance(value, property)}
        python = {
            {"finalUrl": "finalURL", "size": "bytes"}.get(camel_case(name), camel_case(name)): literals(
                typing.get_type_hints(member.fget, {**vars(imageworker), "numpy": None, "PIL": None})["return"]
            )
            for name, member in members.items()
        }
        self.assertEqual({**python, "pixels": set()}, document)

    def test_members_of_what_an_image_has(self) -> None:
        image = SCHEMAS["Image"]["properties"]
        for kind, schema in (
            (imageworker.Placeholder, image["placeholder"]),
            (imageworker.Source, image["source"]),
            (imageworker.Timing, image["timing"]),
            (imageworker.HTTPResponse, SCHEMAS["HTTPResponse"]),
            (imageworker.Crop, SCHEMAS["Transform"]["properties"]["crop"]),
        ):
            with self.subTest(of=kind.__name__):
                self.assertEqual(kind.__annotations__.keys() | set(), schema["properties"].keys())
                self.assertEqual(kind.__required_keys__, set(schema.get("required", schema["properties"])))

    def test_the_result_of_a_prefetch(self) -> None:
        document = SCHEMAS["PrefetchResult"]["properties"]
        self.assertEqual(typed_dict(imageworker.PrefetchResult).keys(), document.keys())
        error = document["errors"]["items"]["properties"]
        self.assertEqual(typed_dict(imageworker.PrefetchError).keys(), error.keys())

    def test_kinds_methods_and_events(self) -> None:
        for name, values in (
            ("ErrorKind", enum(SCHEMAS["ErrorKind"])),
            ("Method", {method["name"] for method in DOCUMENT["methods"]}),
            ("EventName", {event["name"] for event in DOCUMENT["x-events"]}),
            ("LoadEventName", enum(SCHEMAS["LoadEventName"])),
            ("PrefetchEventName", enum(SCHEMAS["PrefetchEventName"])),
            ("Priority", enum(SCHEMAS["Priority"])),
            ("CacheMode", properties("LoadParams")["cache"]),
            ("Format", enum(SCHEMAS["Format"])),
        ):
            with self.subTest(values=name):
                python = set(typing.get_args(getattr(imageworker, name)))
                self.assertEqual(python - {"workerExited"}, values)
        self.assertIn("workerExited", typing.get_args(imageworker.ErrorKind))

    def test_each_kind_is_raised_in_the_class_of_its_family(self) -> None:
        classes = {-32: imageworker.RequestError, 2: imageworker.NetworkError, 3: imageworker.CacheError}
        classes |= {4: imageworker.DecodingError, 5: imageworker.LifecycleError}
        for entry in DOCUMENT["x-errors"]:
            error = imageworker.ImageWorkerError.of({"code": entry["code"], "message": "", "data": {"kind": entry["kind"]}})
            expected = classes[int(entry["code"] / 1000)]
            if entry["kind"] == "cancelled":
                expected = imageworker.CancelledByRequest
            self.assertIs(type(error), expected, entry["kind"])
            self.assertEqual(error.kind, entry["kind"])


if __name__ == "__main__":
    unittest.main()

"""The names in the Python client are those of protocol/openrpc.json."""

from __future__ import annotations

import dataclasses
import re
import sys
import typing
import unittest
from typing import Any

from document import DOCUMENT, SCHEMAS
from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))

import imageworker  # noqa: E402



def enum(schema: dict[str, Any]) -> set[str]:
    """The strings that a value may be, or each value of a list; empty where it may be any."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    if "oneOf" in schema:
        return set().union(*(enum(one) for one in schema["oneOf"]))
    if isinstance(schema.get("const"), str):
        return {schema["const"]}
    return enum(schema["items"]) if "items" in schema else set(schema.get("enum", ()))


def properties(*names: str) -> dict[str, set[str]]:
    """The members of schemas, and the strings that each may be."""
    return {member: enum(schema) for name in names for member, schema in SCHEMAS[name].get("properties", {}).items()}


def members(kind: Any) -> dict[str, set[str]]:
    """The members of a TypedDict or a dataclass of imageworker.py by their names on the wire, and the strings that each may be."""
    hints = typing.get_type_hints(kind, vars(imageworker))
    return {spelling.name: literals(hints[name]) for name, spelling in imageworker._spellings(kind).items()}


def literals(hint: Any) -> set[str]:
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return set().union(*(literals(argument) for argument in typing.get_args(hint)))


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references. The members of `allOf` are joined."""
    while "$ref" in schema:
        *_, name = schema["$ref"].split("/schemas/")
        schema = SCHEMAS
        for part in name.split("/"):
            schema = schema[part]
    return schema


def records(kind: Any) -> list[tuple[str, Any]]:
    """The members of a dataclass that are dataclasses or lists of dataclasses, by their names on the wire."""
    found = []
    for name, hint in typing.get_type_hints(kind, vars(imageworker)).items():
        for part in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(part):
                found.append((imageworker._spellings(kind)[name].name, part))
    return found


class Names(unittest.TestCase):
    """The values of a member count as its name does: `{"fit": {"inside", ...}, "width": set(), ...}`."""

    def check_record(self, kind: Any, schema: dict[str, Any]) -> None:
        """A dataclass has the members of a schema, and those that are required there have no default."""
        schema = resolved(schema)
        with self.subTest(record=kind.__name__):
            hints = typing.get_type_hints(kind, vars(imageworker))
            spellings = imageworker._spellings(kind)
            self.assertEqual({spelling.name for spelling in spellings.values()} | {"id"}, schema["properties"].keys() | {"id"})
            required = {
                spellings[field.name].name
                for field in dataclasses.fields(kind)
                if field.default is dataclasses.MISSING and type(None) not in typing.get_args(hints[field.name])
            }
            self.assertEqual(required, set(schema.get("required", schema["properties"])))
            for name, record in records(kind):
                inner = resolved(schema["properties"][name])
                self.check_record(record, inner.get("items", inner))

    def test_parameters(self) -> None:
        for name, left_out in (("LoadParams", ("url", "file")), ("PrefetchParams", ("urls",)), ("Transform", ())):
            with self.subTest(of=name):
                document = {member: values for member, values in properties(name).items() if member not in left_out}
                if name == "LoadParams":
                    self.assertEqual(set(typing.get_args(imageworker.Deliver)), document.pop("deliver"))
                self.assertEqual(members(getattr(imageworker, name)), document)

    def test_parameters_of_other_methods(self) -> None:
        for name, left_out in (
            ("CancelParams", {"id"}),
            ("PrioritizeParams", {"id", "priority"}),
            ("QueryParams", set()),
            ("ProbeParams", {"url"}),
            ("ProcessParams", {"file", "data"}),
            ("OutputParams", set()),
            ("StoreParams", {"deliver"}),
            ("ClearParams", set()),
            ("ReleaseParams", set()),
            ("Options", set()),
        ):
            with self.subTest(of=name):
                document = {member: values for member, values in properties(name).items() if member not in left_out}
                self.assertEqual(members(getattr(imageworker, name)), document)

    def test_options_of_the_start(self) -> None:
        values = {"--header": {"a": "b"}, "--events": ["started", "progress"], "--rate": 5.0, "--read-only-cache": ["a", "b"]}
        flags: set[str] = set()
        for name, hint in typing.get_type_hints(imageworker.StartOptions, vars(imageworker)).items():
            flag = "--header" if name == "headers" else "--" + name.replace("_", "-")
            value = values.get(flag, True if bool in typing.get_args(hint) else 7)
            flags |= {argument.partition("=")[0] for argument in imageworker._flags({name: value})}
        actions = {"--version", "--help", "--describe", "--self-test"}
        self.assertEqual(flags, {option["flag"] for option in DOCUMENT["x-options"]} - actions)

    def test_items_of_a_prefetch(self) -> None:
        string, item = SCHEMAS["PrefetchItem"]["anyOf"]
        self.assertEqual(string["type"], "string")
        self.assertEqual(members(imageworker.PrefetchItem).keys(), item["properties"].keys())

    def test_names_do_not_look_like_the_protocols(self) -> None:
        for kind in (imageworker.LoadParams, imageworker.Transform, imageworker.Settings, imageworker.Stats, imageworker.CacheEntry):
            self.assertEqual([name for name in imageworker._spellings(kind) if name != name.lower()], [])

    def test_members_of_an_image(self) -> None:
        document = properties("Image", "LoadResult")  # The members that only load has.
        names = {name: value for name, value in vars(imageworker.Image).items() if isinstance(value, property)}
        python = {
            imageworker._NAMES.get(name, camel_case(name)): literals(
                typing.get_type_hints(member.fget, {**vars(imageworker), "numpy": None, "PIL": None})["return"]
            )
            for name, member in names.items()
        }
        self.assertEqual(python, document)

    def test_members_of_what_an_image_has(self) -> None:
        image = SCHEMAS["Image"]["properties"]
        self.check_record(imageworker.Placeholder, image["placeholder"])
        self.check_record(imageworker.EXIF, SCHEMAS["EXIF"])
        self.check_record(imageworker.Position, SCHEMAS["Position"])
        self.check_record(imageworker.Source, image["source"])
        self.check_record(imageworker.Timing, image["timing"])
        self.check_record(imageworker.HTTPResponse, SCHEMAS["HTTPResponse"])
        self.assertEqual(members(imageworker.Want).keys(), SCHEMAS["Want"]["properties"].keys())
        for kind in (imageworker.Crop, imageworker.FocalPoint):
            self.assertEqual(members(kind).keys(), SCHEMAS[kind.__name__]["properties"].keys())

    def test_results_of_other_methods(self) -> None:
        self.check_record(imageworker.Cleared, SCHEMAS["ClearResult"])
        self.check_record(imageworker.Trace, SCHEMAS["TraceResult"])
        self.check_record(imageworker.Stats, SCHEMAS["StatsResult"])
        self.check_record(imageworker.PrefetchResult, SCHEMAS["PrefetchResult"])
        query, python = SCHEMAS["QueryResult"], imageworker._spellings(imageworker.CacheEntry)
        self.assertEqual({spelling.name for spelling in python.values()}, query["properties"].keys())
        self.check_record(imageworker.ImageFacts, SCHEMAS["ProbeResult"])
        information = SCHEMAS["InitializeResult"]
        self.assertEqual(members(imageworker.WorkerInfo).keys(), information["properties"].keys())

    def test_events(self) -> None:
        for kind, name in (
            (imageworker.Started, "StartedEvent"),
            (imageworker.Progress, "LoadProgressEvent"),
            (imageworker.PrefetchProgress, "PrefetchProgressEvent"),
            (imageworker.Retrying, "RetryingEvent"),
            (imageworker.Preview, "PreviewEvent"),
        ):
            self.check_record(kind, SCHEMAS[name])
        names = {typing.get_args(typing.get_type_hints(kind)["name"])[0] for kind in typing.get_args(imageworker.Event)}
        self.assertEqual({typing.get_args(name)[0] for name in names}, set(typing.get_args(imageworker.EventName)))

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
                self.assertEqual(python - {"workerExited", "protocolMismatch"}, values)
        self.assertIn("workerExited", typing.get_args(imageworker.ErrorKind))

    def test_each_kind_has_a_class_and_a_row_in_the_readme(self) -> None:
        readme = (ROOT / "examples" / "python" / "README.md").read_text()
        rows = dict(re.findall(r"^\| `([a-z]\w+)` \| `(\w+)` \|", readme, re.MULTILINE))
        families = {-32: imageworker.RequestError, 2: imageworker.LoadError, 3: imageworker.ImageWorkerError}
        families |= {4: imageworker.ContentError, 5: imageworker.WorkerError}
        for entry in DOCUMENT["x-errors"]:
            error = imageworker.ImageWorkerError.of({"code": entry["code"], "message": "", "data": {"kind": entry["kind"]}})
            family = imageworker.ImageWorkerError if entry["kind"] in ("internal", "cancelled") else families[int(entry["code"] / 1000)]
            self.assertIsInstance(error, family)
            self.assertEqual((error.kind, rows.get(entry["kind"])), (entry["kind"], type(error).__name__))
        self.assertEqual(len(set(imageworker._CLASSES.values())), len(DOCUMENT["x-errors"]))
        self.assertEqual(rows.keys() - imageworker._CLASSES.keys(), {"workerExited", "protocolMismatch"})

    def test_an_error_of_a_newer_worker_has_the_class_of_its_family(self) -> None:
        for code, family in ((2099, imageworker.LoadError), (4099, imageworker.ContentError), (9000, imageworker.ImageWorkerError)):
            error = imageworker.ImageWorkerError.of({"code": code, "message": "", "data": {"kind": "new", "retryable": True}})
            self.assertEqual((type(error), error.code, error.retryable), (family, code, True))


if __name__ == "__main__":
    unittest.main()

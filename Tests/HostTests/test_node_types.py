"""The names, types and documents of examples/node are those of protocol/openrpc.json, and tsc reads its types."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unittest
from typing import Any

from document import SCHEMAS
from package import ROOT

FOLDER = ROOT / "examples" / "node"
DOCUMENT = json.loads((ROOT / "protocol" / "openrpc.json").read_text())
TYPES = (FOLDER / "imageworker.d.ts").read_text()

OWN_ERRORS = {"workerExited": "WorkerExited", "closed": "ClosedError", "incompatible": "IncompatibleWorkerError"}
"""The class of each kind of error that the client makes."""


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference names."""
    while "$ref" in schema:
        found: Any = DOCUMENT
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        schema = found
    return schema


def enum(schema: dict[str, Any]) -> set[str]:
    """The strings that a value or the items of a list may be; empty if any string may be there."""
    schema = resolved(schema)
    if "items" in schema:
        return enum(schema["items"])
    values = {schema["const"]} if "const" in schema else set(schema.get("enum", ()))
    values = values.union(*(enum(branch) for branch in schema.get("oneOf", ()) if isinstance(branch, dict)))
    return {value for value in values if isinstance(value, str)}


def members(name: str) -> dict[str, set[str]]:
    """The members of a schema, and the strings that each may be."""
    return {member: enum(schema) for member, schema in SCHEMAS[name].get("properties", {}).items()}


def interface(name: str) -> dict[str, set[str]]:
    """The members of an interface in imageworker.d.ts, and the strings that each may be."""
    body = re.search(rf"^export interface {name}\b[^\n]*\{{\n(.*?)^\}}", TYPES, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    found = re.findall(r"^  (\w+)\??:((?:.|\n    )*);$", body.group(1), re.MULTILINE)
    return {member: strings(kind) for member, kind in found}


def required(name: str) -> set[str]:
    """The members of an interface that are always there."""
    body = re.search(rf"^export interface {name}\b[^\n]*\{{\n(.*?)^\}}", TYPES, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    return set(re.findall(r"^  (\w+):", body.group(1), re.MULTILINE))


def union(name: str) -> set[str]:
    """The members of a union of strings in imageworker.d.ts."""
    body = re.search(rf"^export type {name} =(.*?);", TYPES, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    return strings(body.group(1))


def strings(kind: str) -> set[str]:
    """The strings that a type allows. The members of an object in it do not count."""
    if "{" in kind:
        return set()
    named = [name for name in re.findall(r"\b([A-Z]\w+)", kind) if re.search(rf"^export type {name} =", TYPES, re.MULTILINE)]
    named = [name for name in named if name not in ("HeaderFields",)]
    return set(re.findall(r'"([\w-]+)"', kind)).union(*(union(name) for name in named))


class Types(unittest.TestCase):
    """A member has the values of the document, too: `{"fit": {"inside", ...}, "width": set(), ...}`."""

    def test_parameters(self) -> None:
        for name in ("LoadParams", "PrefetchParams", "Transform", "ClearParams", "Options"):
            with self.subTest(of=name):
                document = {member: values for member, values in members(name).items() if member not in ("url", "urls")}
                found = interface(name)
                found.pop("url", None)
                if name == "LoadParams":
                    found["deliver"] = union("Deliver")  # A parameter of the type.
                    del document["file"]  # The first argument of `loadFile`.
                self.assertEqual(found, document)

    def test_parameters_with_alternatives(self) -> None:
        for name in ("CancelParams", "PrioritizeParams", "QueryParams", "StoreParams", "ReleaseParams"):
            with self.subTest(of=name):
                body = re.search(rf"^export type {name} =(.*?);\n\n?(?=export|/\*\*)", TYPES, re.MULTILINE | re.DOTALL)
                assert body is not None
                text = body.group(1)
                if "Target" in text:
                    text += re.findall(r"^export type Target = (.*);$", TYPES, re.MULTILINE)[0]
                found = set(re.findall(r"(\w+)\??:", text))
                # The client numbers its requests itself, so `id` is of no use to a program.
                self.assertEqual(found, SCHEMAS[name]["properties"].keys() - {"id"})

    def test_settings_are_the_options_of_the_worker(self) -> None:
        def camel_case(flag: str) -> str:
            first, *rest = flag.removeprefix("--").split("-")
            return first + "".join(word.capitalize() for word in rest)

        flags = [entry for entry in DOCUMENT["x-options"] if entry["flag"] not in ("--version", "--help", "--describe")]
        flags = [entry for entry in flags if entry["flag"] != "--self-test"]
        names = {entry.get("member", camel_case(entry["flag"])) for entry in flags}
        self.assertEqual(interface("Options").keys() | interface("StartOptions").keys(), names)

    def test_results(self) -> None:
        for name in ("InitializeResult", "PrefetchResult", "QueryResult", "StatsResult", "HTTPResponse", "ErrorData"):
            with self.subTest(of=name):
                self.assertEqual(interface(name).keys(), SCHEMAS[name]["properties"].keys())
                self.assertEqual(required(name), set(SCHEMAS[name]["required"]))
        for name in ("CancelResult", "PrioritizeResult", "PauseResult", "ClearResult", "ReleaseResult"):
            with self.subTest(of=name):
                self.assertEqual(required(name), SCHEMAS[name]["properties"].keys())

    def test_members_of_results(self) -> None:
        stats = SCHEMAS["StatsResult"]["properties"]
        for name, schema in (
            ("OriginStats", stats["origins"]["items"]),
            ("ResolverStats", stats["resolver"]),
            ("DiskStats", stats["disk"]),
            ("Timing", SCHEMAS["Image"]["properties"]["timing"]),
            ("Pixels", SCHEMAS["Image"]["properties"]["pixels"]),
            ("Crop", SCHEMAS["Crop"]),
            ("EXIF", SCHEMAS["EXIF"]),
            ("Position", SCHEMAS["Position"]),
            ("FocalPoint", SCHEMAS["FocalPoint"]),
        ):
            with self.subTest(of=name):
                document = {member: enum(value) for member, value in schema["properties"].items()}
                self.assertEqual(interface(name), document)
                self.assertEqual(required(name), set(schema["required"]))
        for member in ("requests", "transfers", "cache", "memory", "decoders", "pixels"):
            with self.subTest(of=member):
                text = re.findall(rf"^  {member}: \{{ (.*) \}};$", TYPES, re.MULTILINE)
                names = [re.findall(r"(\w+):", line) for line in text]
                self.assertIn(list(stats[member]["properties"]), names)

    def test_members_of_an_image(self) -> None:
        document = members("Image")
        found = {**interface("ImageFacts"), **{name: set() for name in ("path", "data", "pixels")}}
        self.assertEqual(found, document)
        self.assertEqual(interface("Delivered").keys(), union("Deliver"))
        always = required("ImageFacts")
        self.assertLessEqual(set(SCHEMAS["Image"]["required"]) | {"url", "kept"}, always)

    def test_items_of_a_prefetch(self) -> None:
        _, item = SCHEMAS["PrefetchItem"]["anyOf"]
        self.assertEqual(interface("PrefetchItem").keys(), item["properties"].keys())
        self.assertEqual(required("PrefetchItem"), set(item["required"]))

    def test_methods(self) -> None:
        methods = {method["name"] for method in DOCUMENT["methods"]}
        self.assertEqual(interface("Methods").keys(), methods)
        declared = set(re.findall(r"^  (\w+)[<(]", TYPES[TYPES.index("export class ImageWorker {") :], re.MULTILINE))
        # `ready`, `close`, `startTrace` and `stopTrace` stand for these.
        self.assertLessEqual(methods - {"initialize", "shutdown", "trace"}, declared)

    def test_events(self) -> None:
        types = {
            "StartedEvent": "StartedEvent",
            "LoadProgressEvent": "ProgressEvent",
            "PrefetchProgressEvent": "PrefetchProgressEvent",
            "RetryingEvent": "RetryingEvent",
            "PreviewEvent": "PreviewEvent",
            "FailedEvent": "FailedEvent",
        }
        for schema, name in types.items():
            with self.subTest(of=name):
                body = re.search(rf"^export interface {name} \{{\n(.*?)^\}}", TYPES, re.MULTILINE | re.DOTALL)
                assert body is not None
                (params,) = re.findall(r"^  params: \{ (.*) \};$", body.group(1), re.MULTILINE)
                outer = re.sub(r"\{.*\}", "", params)
                found = re.findall(r"(\w+)(\??):", outer)
                self.assertEqual([member for member, _ in found], list(SCHEMAS[schema]["properties"]))
                self.assertEqual({member for member, optional in found if not optional}, set(SCHEMAS[schema]["required"]))
        names = set(re.findall(r'^  name: "(\w+)";$', TYPES, re.MULTILINE))
        self.assertEqual(names, {event["name"] for event in DOCUMENT["x-events"]})

    def test_values(self) -> None:
        for name, values in (
            ("ErrorKind", enum(SCHEMAS["ErrorKind"])),
            ("Method", {method["name"] for method in DOCUMENT["methods"]}),
            ("EventName", {event["name"] for event in DOCUMENT["x-events"]}),
            ("LoadEventName", enum(SCHEMAS["LoadEventName"])),
            ("PrefetchEventName", enum(SCHEMAS["PrefetchEventName"])),
            ("Priority", enum(SCHEMAS["Priority"])),
            ("CacheMode", members("LoadParams")["cache"]),
            ("Deliver", members("LoadParams")["deliver"]),
            ("Format", enum(SCHEMAS["Format"])),
        ):
            with self.subTest(values=name):
                self.assertEqual(union(name), values)

    @unittest.skipIf(shutil.which("tsc") is None, "there is no tsc here")
    def test_a_program_with_every_method_and_event_compiles_and_one_with_a_mistake_does_not(self) -> None:
        source = str(ROOT / "Tests" / "HostTests" / "node_types.mts")
        for libraries in ("es2022,dom", "es2022,dom,dom.iterable"):
            options = ["--noEmit", "--strict", "--target", "es2022", "--module", "node16", "--lib", libraries]
            run = subprocess.run(["tsc", *options, source], stdout=subprocess.PIPE, text=True)
            self.assertEqual((run.returncode, run.stdout), (0, ""))


class Errors(unittest.TestCase):
    def table(self) -> dict[str, str]:
        """The class of each kind, as README.md tells it."""
        rows = re.findall(r"^\| `(\w+)` \| (`\w+`(?:, `\w+`)*) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
        return {kind: name for name, kinds in rows for kind in re.findall(r"`(\w+)`", kinds)}

    def test_the_table_has_the_class_of_each_kind(self) -> None:
        self.assertEqual(self.table().keys(), enum(SCHEMAS["ErrorKind"]) | OWN_ERRORS.keys())

    def test_a_type_has_the_kinds_of_the_table(self) -> None:
        def kinds(name: str) -> set[str]:
            body = re.search(rf"^export class {name} extends (\w+) \{{\n(.*?)^\}}", TYPES, re.MULTILINE | re.DOTALL)
            assert body is not None, name
            kind = re.search(r"^  readonly kind:((?:.|\n    )*);$", body.group(2), re.MULTILINE)
            assert kind is not None, name
            text = re.sub(r"\b\w+Kind\b", lambda found: self.alias(found.group()), kind.group(1))
            return set(re.findall(r'"(\w+)"', text))

        classes: dict[str, set[str]] = {}
        for kind, name in self.table().items():
            classes.setdefault(name, set()).add(kind)
        derived = {
            "NetworkError": ["TransportError", "TimeoutError", "HTTPStatusError", "PolicyError"],
            "RequestError": ["InvalidParamsError"],
            "LifecycleError": [*OWN_ERRORS.values()],
        }
        for name, others in derived.items():
            classes[name] = classes.get(name, set()).union(*(classes[other] for other in others))
        for name, expected in classes.items():
            with self.subTest(of=name):
                self.assertEqual(kinds(name), expected)

    def alias(self, name: str) -> str:
        (values,) = re.findall(rf"^(?:export )?type {name} = (.*);$", TYPES, re.MULTILINE)
        return str(values)

    @unittest.skipIf(shutil.which("node") is None, "there is no node here")
    def test_each_kind_is_thrown_in_its_class(self) -> None:
        script = """
            const { ImageWorkerError } = await import(process.argv[1]);
            const errors = JSON.parse(process.argv[2]).map(({ code, kind }) => {
              const { name, ...error } = ImageWorkerError.of({ code, message: "m", data: { kind } });
              return [kind, name, error.code, error.kind];
            });
            console.log(JSON.stringify(errors));
        """
        table = self.table()
        arguments = [(FOLDER / "imageworker.mjs").as_uri(), json.dumps(DOCUMENT["x-errors"])]
        command = ["node", "--input-type=module", "--eval", script, *arguments]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        expected = [[each["kind"], table[each["kind"]], each["code"], each["kind"]] for each in DOCUMENT["x-errors"]]
        self.assertEqual(found, expected)


if __name__ == "__main__":
    unittest.main()

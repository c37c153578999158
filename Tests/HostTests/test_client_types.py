"""The names in both clients are those of protocol/openrpc.json, and tsc reads the types of the one for Node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import typing
import unittest
from typing import Any

from package import ROOT

sys.path.insert(0, str(ROOT / "examples" / "python"))

import imageworker  # noqa: E402

DOCUMENT = json.loads((ROOT / "protocol" / "openrpc.json").read_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
TYPES = (ROOT / "examples" / "node" / "imageworker.d.ts").read_text()


def interface(name: str) -> set[str]:
    """The members of an interface in imageworker.d.ts."""
    body = re.search(rf"^export interface {name} \{{\n(.*?)^\}}", TYPES, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    return set(re.findall(r"^  (\w+)\??:", body.group(1), re.MULTILINE))


def union(name: str) -> set[str]:
    """The members of a union of strings in imageworker.d.ts."""
    body = re.search(rf"^export type {name} =(.*?);", TYPES, re.MULTILINE | re.DOTALL)
    assert body is not None, name
    return set(re.findall(r'"([\w-]+)"', body.group(1)))


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Names(unittest.TestCase):
    def test_parameters_of_load(self) -> None:
        document = set(SCHEMAS["LoadParams"]["properties"]) - {"url"}
        self.assertEqual({camel_case(name) for name in imageworker.LoadParams.__annotations__}, document)
        self.assertEqual(interface("LoadParams"), document)

    def test_spellings_that_the_python_client_changes(self) -> None:
        for python, wire in imageworker._WIRE_NAMES.items():
            self.assertEqual(camel_case(python), wire)
        changed = {name for name in imageworker.LoadParams.__annotations__ if "_" in name}
        self.assertEqual(changed, set(imageworker._WIRE_NAMES))

    def test_members_of_results(self) -> None:
        # What load adds to what store and the events send.
        members = set(SCHEMAS["Image"]["properties"]) | set(SCHEMAS["LoadResult"].get("properties", {}))
        self.assertEqual(interface("Image"), members)
        self.assertEqual(interface("PrefetchResult"), set(SCHEMAS["PrefetchResult"]["properties"]))
        self.assertEqual(interface("PrefetchParams"), set(SCHEMAS["PrefetchParams"]["properties"]) - {"urls"})
        self.assertEqual(interface("Transform"), set(SCHEMAS["Transform"]["properties"]))

    def test_error_kinds(self) -> None:
        document = set(SCHEMAS["ErrorKind"]["enum"])
        self.assertEqual(set(typing.get_args(imageworker.ErrorKind)), document | {"workerExited"})
        self.assertEqual(union("ErrorKind"), document)

    def test_values(self) -> None:
        for name, values in (
            ("Priority", SCHEMAS["Priority"]["enum"]),
            ("CacheMode", SCHEMAS["LoadParams"]["properties"]["cache"]["enum"]),
            ("LoadEventName", SCHEMAS["LoadEventName"]["enum"]),
        ):
            with self.subTest(values=name):
                self.assertEqual(set(typing.get_args(getattr(imageworker, name))), set(values))
                self.assertEqual(union(name), set(values))
        self.assertEqual(union("Format"), set(SCHEMAS["Format"]["enum"]))

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

    @unittest.skipIf(shutil.which("tsc") is None, "there is no tsc here")
    def test_the_types_for_node_hold(self) -> None:
        options = ["--noEmit", "--strict", "--target", "es2022", "--module", "node16", "--lib", "es2022,dom"]
        source = str(ROOT / "Tests" / "HostTests" / "node_types.mts")
        run = subprocess.run(["tsc", *options, source], stdout=subprocess.PIPE, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()

"""openrpc.json describes what it says it does, and its examples are examples of it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path
from typing import Any, Iterator

from origin_process import Origin
from package import ROOT

try:
    from wire import DRAFTS, Wire
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"there is no {missing.name} here") from None


def schemas_in(value: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, child in value.items():
            yield from schemas_in(child, f"{path}.{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from schemas_in(child, f"{path}[{index}]")


class OpenRPCDocument(unittest.TestCase):
    wire = Wire()

    def test_its_schemas_are_schemas_of_both_drafts(self) -> None:
        for name, schema in self.wire.document["components"]["schemas"].items():
            for draft in DRAFTS:
                with self.subTest(schema=name, draft=draft.__name__):
                    draft.check_schema(schema)

    def test_its_schemas_use_only_what_both_drafts_read_alike(self) -> None:
        one_sided = {"$defs", "definitions", "prefixItems", "additionalItems", "dependencies", "dependentRequired",
                     "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "$anchor", "$dynamicRef", "$id",
                     "minContains", "maxContains"}
        for path, schema in schemas_in(self.wire.document["components"]["schemas"]):
            self.assertFalse(one_sided & schema.keys(), path)
            self.assertFalse(isinstance(schema.get("items"), list), path)
            if "$ref" in schema:
                self.assertEqual(list(schema), ["$ref"], f"{path}: draft-07 ignores what stands beside $ref")

    def test_every_reference_leads_somewhere(self) -> None:
        for path, value in schemas_in(self.wire.document):
            if isinstance(value.get("$ref"), str):
                target: Any = self.wire.document
                for step in value["$ref"].removeprefix("#/").split("/"):
                    self.assertIn(step, target, path)
                    target = target[step]

    def test_params_are_the_members_of_the_params_schema(self) -> None:
        schemas = self.wire.document["components"]["schemas"]
        for name, method in self.wire.methods.items():
            with self.subTest(method=name):
                schema_name = method["x-params"]["$ref"].rsplit("/", 1)[1]
                schema = schemas[schema_name]
                self.assertIs(schema["additionalProperties"], False)
                self.assertEqual([param["name"] for param in method["params"]], list(schema["properties"]))
                required = [param["name"] for param in method["params"] if param.get("required")]
                self.assertEqual(required, schema.get("required", []))
                for param in method["params"]:
                    reference = f"#/components/schemas/{schema_name}/properties/{param['name']}"
                    self.assertEqual(param["schema"], {"$ref": reference})

    def test_each_method_has_an_example_that_holds(self) -> None:
        for name, method in self.wire.methods.items():
            with self.subTest(method=name):
                self.assertTrue(method["examples"])
                for example in method["examples"]:
                    self.wire.check_params(name, {param["name"]: param["value"] for param in example["params"]})
                    self.wire.check_result(name, example["result"]["value"])

    def test_a_member_nobody_knows_is_refused_everywhere(self) -> None:
        for name, method in self.wire.methods.items():
            with self.subTest(method=name), self.assertRaises(AssertionError):
                params = {param["name"]: param["value"] for param in method["examples"][0]["params"]}
                self.wire.check_params(name, {**params, "colour": "red"})

    def test_each_event_has_an_example_that_holds(self) -> None:
        for name, event in self.wire.events.items():
            with self.subTest(event=name):
                self.wire.check_event(name, event["example"])
        names = self.wire.document["components"]["schemas"]["EventName"]["enum"]
        self.assertEqual(list(self.wire.events), names)

    def test_what_a_method_answers_may_come_as_completed(self) -> None:
        for name, method in self.wire.methods.items():
            for example in method["examples"]:
                with self.subTest(method=name, example=example["name"]):
                    self.wire.check_event("completed", example["result"]["value"])

    def test_a_query_names_one_image(self) -> None:
        refused: list[dict[str, Any]] = [{}, {"transform": {}}, {"url": "https://example.com/cat.jpg", "key": "cat"}]
        for params in refused:
            with self.subTest(params=params), self.assertRaises(AssertionError):
                self.wire.check_params("query", params)

    def test_error_kinds_are_the_enumeration_and_codes_are_their_own(self) -> None:
        kinds = self.wire.document["components"]["schemas"]["ErrorKind"]["enum"]
        self.assertEqual(list(self.wire.errors), kinds)
        codes = [error["code"] for error in self.wire.errors.values()]
        self.assertEqual(len(codes), len(set(codes)))

    def test_run_time_options_are_the_members_of_configure(self) -> None:
        members = {option["member"] for option in self.wire.document["x-options"] if "member" in option}
        self.assertEqual(members, set(self.wire.document["components"]["schemas"]["Options"]["properties"]))

    def test_results_and_events_are_open_to_new_members(self) -> None:
        components = self.wire.document["components"]
        checks = [
            (name, method["result"]["schema"], example["result"]["value"])
            for name, method in self.wire.methods.items()
            for example in method["examples"]
        ]
        checks += [(name, event["params"], event["example"]) for name, event in self.wire.events.items()]
        for name, schema, value in checks:
            if name == "shutdown":
                continue  # Its result is empty.
            for draft in DRAFTS:
                with self.subTest(of=name, draft=draft.__name__):
                    published = draft({"allOf": [schema], "components": components})
                    self.assertEqual(list(published.iter_errors({**value, "newMember": 1})), [])
                    with self.assertRaises(AssertionError):
                        self.wire.check({**value, "newMember": 1}, schema, name)

    def test_only_params_refuse_unknown_members(self) -> None:
        schemas = self.wire.document["components"]["schemas"]
        sent = {path.split(".")[1] for path, schema in schemas_in(schemas) if schema.get("additionalProperties") is False}
        params = {method["x-params"]["$ref"].rpartition("/")[2] for method in self.wire.methods.values()}
        self.assertEqual(sent, params | {"Client", "Crop", "FocalPoint", "HostFile", "OutputParams", "Transform", "PrefetchItem", "Want"})

    def test_everything_has_a_description(self) -> None:
        for name, schema in self.wire.document["components"]["schemas"].items():
            self.assertTrue(schema.get("description"), name)
        for path, schema in schemas_in(self.wire.document["components"]["schemas"]):
            for name, member in schema.get("properties", {}).items() if schema.get("type") == "object" else ():
                self.assertTrue(self.resolved(member).get("description"), f"{path}.{name}")
        for name, method in self.wire.methods.items():
            for descriptor in [*method["params"], method["result"]]:
                with self.subTest(method=name, descriptor=descriptor["name"]):
                    self.assertEqual(descriptor["description"], self.resolved(descriptor["schema"])["description"])

    def test_each_object_has_a_name(self) -> None:
        for path, schema in schemas_in(self.wire.document["components"]["schemas"]):
            is_named = path.count(".") == 1 or path == "$.PrefetchItem.anyOf[1]"
            if schema.get("type") == "object" and "properties" in schema:
                self.assertTrue(is_named, f"{path} is an anonymous object")

    def test_errors_of_methods_are_components(self) -> None:
        components = self.wire.document["components"]["errors"]
        self.assertEqual(list(components), list(self.wire.errors))
        for kind, error in components.items():
            entry = self.wire.errors[kind]
            self.assertEqual((error["code"], error["message"]), (entry["code"], entry["summary"]))
            self.assertEqual(error["data"], {"kind": kind, "retryable": entry["retryable"]})
        every_method = {"parseError", "invalidRequest", "methodNotFound"}  # They are the errors of lines, not of methods.
        listed = {error["$ref"] for method in self.wire.methods.values() for error in method["errors"]}
        self.assertEqual(listed, {f"#/components/errors/{kind}" for kind in components if kind not in every_method})

    def test_each_method_has_a_tag(self) -> None:
        tags = {f"#/components/tags/{tag}" for tag in self.wire.document["components"]["tags"]}
        self.assertEqual({tag["$ref"] for method in self.wire.methods.values() for tag in method["tags"]}, tags)

    def test_a_digest_is_hexadecimal_or_base64(self) -> None:
        for digest in ("sha256-" + "0aF9" * 16, "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="):
            self.wire.check_params("load", {"url": "https://example.com/cat.jpg", "digest": digest})
        for digest in ("0aF9" * 16, "sha256-" + "0aF9" * 15, "sha512-" + "0aF9" * 16):
            with self.assertRaises(AssertionError):
                self.wire.check_params("load", {"url": "https://example.com/cat.jpg", "digest": digest})

    def test_a_worker_answers_each_example(self) -> None:
        """The results have the members of the examples. Values, such as totals, may differ."""
        worker = os.environ.get("IMAGEWORKER", str(ROOT / ".build" / "release" / "imageworker"))
        with Origin() as origin, tempfile.TemporaryDirectory() as folder:
            avatar = Path(folder, "avatar.png")
            with urllib.request.urlopen(f"{origin.url}/image/9.png") as picture:
                avatar.write_bytes(picture.read())
            photo = Path(folder, "spool", "5f3c", "photo")
            photo.parent.mkdir(parents=True)
            with urllib.request.urlopen(f"{origin.url}/image/3.jpg") as picture:
                photo.write_bytes(picture.read())
            Path(folder, "media").mkdir()

            def local(value: Any) -> Any:
                text = json.dumps(value).replace("https://example.com/", f"{origin.url}/image/")
                text = text.replace("/home/ann/avatar.png", str(avatar)).replace("cat.jpg", "3.jpg?etag=v1")
                text = text.replace("/srv/", f"{folder}/").replace('"minWidth": 200', '"minWidth": 16')
                # Longer than the range of a probe.
                return json.loads(text.replace("5.jpg", "5.webp?bytes=48214"))

            command = [worker, "--cache-dir", str(Path(folder, "cache"))]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdin and process.stdout
                for name, method in self.wire.methods.items():
                    for example in method["examples"]:
                        params = local({param["name"]: param["value"] for param in example["params"]})
                        process.stdin.write(json.dumps({"id": 1, "method": name, "params": params}) + "\n")
                        process.stdin.flush()
                        answer = json.loads(process.stdout.readline())
                        with self.subTest(method=name, example=example["name"]):
                            self.assertIn("result", answer)
                            self.wire.check_result(name, answer["result"])
                            self.assertEqual(set(answer["result"]), set(example["result"]["value"]))

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            target: Any = self.wire.document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            schema = target
        return schema


if __name__ == "__main__":
    unittest.main()

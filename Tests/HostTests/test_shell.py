"""The recipes of examples/shell: what they do, what they print, and their exit statuses."""

from __future__ import annotations

import base64
import gzip
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import unittest
from pathlib import Path
from typing import Mapping

from origin_process import PATIENCE
from test_examples import EXAMPLES, WORKER, Running

DATA = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class HereDocument(Running):
    def test_here_document(self) -> None:
        run = self.run_example("shell/here-document", f"{self.origin.url}/image/1.png")
        self.assertEqual(run.returncode, 0, run.stdout)
        (answer,) = map(json.loads, run.stdout.splitlines())
        self.assertEqual((answer["id"], answer["result"]["format"]), (1, "png"))

    def test_here_document_with_what_json_would_have_to_escape(self) -> None:
        run = self.run_example("shell/here-document", f'{self.origin.url}/image/1.png?x-a="\\')
        answers = {answer["id"]: answer["result"] for answer in map(json.loads, run.stdout.splitlines())}
        self.assertEqual(answers[1]["url"], f"{self.origin.url}/image/1.png?x-a=%22%5C")


@unittest.skipIf(shutil.which("jq") is None, "there is no jq here")
class ShellRecipes(Running):
    def test_a_list_that_cannot_be_read_to_its_end_ends_a_recipe_and_removes_nothing(self) -> None:
        urls = [f"{self.origin.url}/image/{number}.png" for number in range(4)]
        self.assertEqual(self.run_example("shell/mirror", "pictures", text="\n".join(urls)).returncode, 0)
        broken = self.folder / "bin" / "tr"
        broken.parent.mkdir()
        broken.write_text("#!/bin/sh\nhead -n 2\nexit 1\n")
        broken.chmod(0o755)
        path = f"{broken.parent}:{os.environ['PATH']}"
        for recipe in (["mirror", "pictures"], ["load-list"], ["save-list", "saved"], ["prefetch"], ["contact-sheet"]):
            with self.subTest(recipe=recipe[0]):
                run = self.run_example(f"shell/{recipe[0]}", *recipe[1:], text="\n".join(urls), PATH=path)
                self.assertEqual(run.returncode, 1, run.stdout)
        self.assertEqual(len(list((self.folder / "pictures").glob("*.png"))), 4)

    def test_one_image_is_loaded(self) -> None:
        run = self.run_example("shell/load", f"{self.origin.url}/image/1.png?bytes=1000")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(Path(run.stdout.rstrip("\n")).stat().st_size, 1000)
        run = self.run_example("shell/load", f"{self.origin.url}/html")
        self.assertEqual((run.returncode, run.stdout.partition(":")[0]), (3, "notAnImage"))

    def test_a_contact_sheet_has_a_place_for_each(self) -> None:
        urls = [f"{self.origin.url}/image/{number}.png?width=400&height=300" for number in (1, 2)]
        run = self.run_example("shell/contact-sheet", text="\n".join([urls[0], f"{self.origin.url}/html", urls[1], DATA]))
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertIn("<meta charset=utf-8>", run.stdout)
        places = [line for line in run.stdout.splitlines() if line.startswith("<a ")]
        self.assertEqual(["data:image/webp;base64," in place for place in places], [True, False, True, True])
        self.assertNotIn("href", places[3])
        self.assertIn("notAnImage", places[1])

    def test_save_list(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.gif", f"{self.origin.url}/html", "no URL"]
        run = self.run_example("shell/save-list", "pictures", text="\n".join(urls))
        self.assertEqual(run.returncode, 3, run.stdout)
        lines = sorted(line.split("\t") for line in run.stdout.splitlines())
        self.assertEqual([line[1] for line in lines], ["png", "gif", "FAILED", "FAILED"])
        self.assertEqual([line[3] for line in lines], urls)
        self.assertRegex(lines[3][2], "^invalidParams: the URL must begin with http")
        self.assertEqual(sorted(path.name for path in (self.folder / "pictures").iterdir()), ["1", "2"])
        self.assertEqual((self.folder / "pictures" / "2").read_bytes()[:3], b"GIF")

    def test_progress(self) -> None:
        run = self.run_example("shell/progress", f"{self.origin.url}/image/1.png?bytes=100000")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stdout, r"(?m)^1: \d+ %$")
        self.assertRegex(run.stdout, r"(?m)^1: /.*\.png$")

    def test_what_looks_like_an_option_is_a_url(self) -> None:
        run = self.run_example("shell/progress", f"{self.origin.url}/image/1.png", "--help")
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertIn("2: the URL must begin with http", run.stdout)

    def test_each_recipe_prints_what_it_does_and_when_it_is_called_otherwise_exits_with_64(self) -> None:
        for path in sorted((EXAMPLES / "shell").iterdir()):
            if not os.access(path, os.X_OK) or path.name in ("clean-list", "find-worker"):
                continue
            usage = rf"(?m)^    .*{path.name}\b"
            for arguments, status in (["-h"], 0), (["--help"], 0), (["a", "b", "c"], 64):
                with self.subTest(recipe=path.name, arguments=arguments):
                    if status == 64 and path.name in ("progress", "watch"):
                        continue  # They take any.
                    run = self.run_example(f"shell/{path.name}", *arguments)
                    self.assertEqual(run.returncode, status, run.stdout)
                    self.assertRegex(run.stdout, usage)
        self.assertEqual(self.run_example("shell/progress").returncode, 64)

    def test_ctrl_c_ends_a_loop_around_a_recipe(self) -> None:
        for recipe in ("is-image", "here-document"):
            with self.subTest(recipe=recipe):
                url = f"{self.origin.url}/image/1.png?hold={recipe}"
                loop = f"for i in 1 2 3; do '{EXAMPLES}/shell/{recipe}' '{url}' >&2; echo round $i; done"
                run = subprocess.Popen(
                    ["bash", "-c", loop],
                    env={**os.environ, "XDG_CACHE_HOME": str(self.folder / recipe)},
                    start_new_session=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                self.origin.command({"do": "await", "gate": recipe, "held": 1})
                os.killpg(run.pid, signal.SIGINT)
                self.assertEqual((run.communicate(timeout=PATIENCE)[0], run.returncode), ("", -signal.SIGINT))

    def test_prefetch(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.png?status=404"]
        run = self.run_example("shell/prefetch", text="\n".join(urls))
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("1 downloaded, 0 cached, 1 failed", run.stdout)

    def test_prefetch_with_lines_that_are_not_urls_brings_the_others(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(1001)]
        bad = ["a list", "http://[bad/x", f"{self.origin.url}/{'x' * 9000}"]
        run = self.run_example("shell/prefetch", text="\r\n".join(["\ufeff" + bad[0], *urls, *bad[1:], f"{urls[0]}?x-ü"]))
        self.assertEqual(run.returncode, 3, run.stdout)
        *failed, tally = run.stdout.splitlines()
        bad[2] = bad[2][:64] + "…"  # A URL that is too long is not repeated whole.
        self.assertEqual(sorted(failed), sorted(f"invalidParams\t{line}" for line in bad))
        self.assertEqual(tally, "1002 downloaded, 0 cached, 3 failed")

    def test_lists_as_windows_writes_them(self) -> None:
        text = f"\ufeff# a list\r\n{self.origin.url}/image/1.png\r\n\r\n {self.origin.url}/image/2.png\r\n"
        for recipe in ("load-list", "contact-sheet", "save-list", "mirror"):
            folder = [recipe] if recipe in ("save-list", "mirror") else []
            run = self.run_example(f"shell/{recipe}", *folder, text=text)
            self.assertEqual((run.returncode, "invalidParams" in run.stdout), (0, False), run.stdout)
        self.assertEqual(sorted(path.name for path in (self.folder / "save-list").iterdir()), ["1", "2"])
        targets = {entry["target"] for entry in self.origin.command({"do": "log", "path": "/image"})["exchanges"]}
        self.assertEqual(targets, {"/image/1.png", "/image/2.png"})

    def test_recipes_are_found_through_links_and_whatever_cdpath_says(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        (self.folder / "worker").symlink_to(WORKER)
        (self.folder / "is-image").symlink_to(EXAMPLES / "shell" / "is-image")
        self.assertEqual(self.run_example(str(self.folder / "is-image"), url).returncode, 0)
        for folder in ("elsewhere/pictures", "here"):
            (self.folder / folder).mkdir(parents=True)
        precious = self.folder / "elsewhere" / "pictures" / ("0" * 32 + ".png")
        precious.touch()
        for argument in ("pictures", "-"):
            run = self.run_example(
                "shell/mirror",
                argument,
                text=url,
                cwd=self.folder / "here",
                CDPATH=f"{self.folder}/elsewhere",
                OLDPWD=str(precious.parent),
                IMAGEWORKER="../worker",
            )
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertEqual(len(list((self.folder / "here" / argument).glob("*.png"))), 1)
        self.assertTrue(precious.exists())

    def test_is_image(self) -> None:
        self.assertEqual(self.run_example("shell/is-image", f"{self.origin.url}/image/1.png").returncode, 0)
        self.assertEqual(self.run_example("shell/is-image", f"{self.origin.url}/html").returncode, 3)
        self.assertEqual(self.run_example("shell/is-image", f"{self.origin.url}/image/1.png?status=404").returncode, 3)
        self.assertEqual(self.run_example("shell/is-image", "").returncode, 3)
        run = self.run_example("shell/is-image", "http://127.0.0.1:1/image.png")
        self.assertEqual((run.returncode, run.stdout), (75, "is-image: 127.0.0.1:1 refused the connection\n"))

    def test_without_a_worker_or_its_cache_the_status_says_so(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        (self.folder / "file").touch()
        for recipe in ("is-image", "load-list", "prefetch-sitemap", "sitemap.py"):
            arguments, text = ([], url) if recipe == "load-list" else ([url], "")
            absent = self.run_example(f"shell/{recipe}", *arguments, text=text, IMAGEWORKER="/nope")
            unusable = self.run_example(f"shell/{recipe}", *arguments, text=text, XDG_CACHE_HOME=f"{self.folder}/file")
            for status, run in (69, absent), (73, unusable):
                with self.subTest(recipe=recipe, status=status):
                    self.assertEqual(run.returncode, status, run.stdout)
                    self.assertNotRegex(run.stdout, "Traceback|refused|0 downloaded")

    def test_load_list_draws_a_bar_on_a_terminal_and_prints_paths(self) -> None:
        urls = [f"{self.origin.url}/image/1.png", f"{self.origin.url}/image/2.gif", f"{self.origin.url}/html"]
        run = self.run_example("shell/load-list", text="\n".join(urls) + "\n\n")
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertNotIn("[", run.stdout)
        self.assertIn(f"notAnImage: {urls[2]}", run.stdout)
        self.assertRegex(run.stdout, rf"(?m)^/.*\.gif\t{urls[1]}$")
        (self.folder / "list").write_text("\n".join(urls))
        command = f"'{EXAMPLES}/shell/load-list' < '{self.folder}/list'"
        terminal = subprocess.run(
            ["script", "--quiet", "--return", "--command", command, "/dev/null"],
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.assertEqual(terminal.returncode, 3)
        self.assertIn("[########################################] 3 of 3, 1 failed", terminal.stdout)
        self.assertEqual(terminal.stdout.count("\x1b[?7l["), 3, "a narrow terminal cuts the bar off and does not wrap it")
        self.assertEqual(terminal.stdout.count("\x1b[?7h\n\x1b[K"), 2, "what is printed after a bar takes its place")

    def test_mirror_copies_what_is_new_removes_what_is_gone_and_keeps_what_fails(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(3)]
        self.assertEqual(self.run_example("shell/mirror", "copy", text="\n".join(urls)).returncode, 0)
        files = {path.name: path.stat() for path in (self.folder / "copy").glob("*.png")}
        self.assertEqual(len(files), 3)
        self.origin.command({"do": "script", "target": "/image/3.png", "answers": ["/image/3.png?status=404"]})
        text = "\n".join([*urls[:2], f"{self.origin.url}/image/3.png"])
        run = self.run_example("shell/mirror", "copy", text=text)
        self.assertEqual(run.returncode, 3, run.stdout)
        left = {path.name: path.stat() for path in (self.folder / "copy").glob("*.png")}
        self.assertEqual(len(left), 2)
        for name, status in left.items():
            self.assertEqual(status.st_ino, files[name].st_ino, "not copied again")

    def mirrored(self) -> set[str]:
        return {path.name for path in (self.folder / "copy").glob("*.*") if not path.name.startswith(".")}

    def test_mirror_removes_nothing_where_the_list_is_not_what_it_should_be(self) -> None:
        urls = [f"{self.origin.url}/image/{n}.png" for n in range(3)]
        lines = "".join(f"{url}\n" for url in urls).encode()
        self.assertEqual(self.run_example("shell/mirror", "copy", text=lines).returncode, 0)
        files = self.mirrored()
        for what, text, status in (
            ("CRLF", lines.replace(b"\n", b"\r\n"), 0),
            ("a byte order mark", b"\xef\xbb\xbf" + lines, 0),
            ("blanks", b"\n" + lines.replace(b"\n", b" \n"), 0),
            ("NUL", lines + b"\0\n", 0),
            ("no byte of UTF-8", lines + f"{self.origin.url}/caf\xe9.png\n".encode("latin-1"), 3),
            ("a comment", b"# pictures\n" + lines, 0),
            ("no list", b"<html>not found</html>\n", 65),
            ("a line that is not a URL", lines + b"pictures\n", 65),
            ("UTF-16", lines.decode().encode("utf-16"), 65),
            ("nothing", b"", 65),
            ("blank lines", b"\r\n\n", 65),
        ):
            with self.subTest(list=what):
                run = self.run_example("shell/mirror", "copy", text=text, LC_ALL="C.UTF-8")
                self.assertEqual(run.returncode, status, run.stdout)
                self.assertEqual(self.mirrored(), files)
        self.assertEqual(self.run_example("shell/mirror", "copy", text=urls[0]).returncode, 0)
        self.assertEqual(len(self.mirrored()), 1)

    def test_mirror_removes_nothing_where_lines_are_not_answered(self) -> None:
        text = "".join(f"{self.origin.url}/image/{n}.png\n" for n in range(3)) + f"{self.origin.url}/html\n"
        self.assertEqual(self.run_example("shell/mirror", "copy", text=text).returncode, 3)
        files = self.mirrored()
        self.assertEqual(len(files), 3)
        fake = self.folder / "jq"  # Dies while it writes the requests, as under the out-of-memory killer.
        jq = shutil.which("jq")
        fake.write_text(f'#!/bin/sh\ncase $* in *foreach*) {jq} "$@" | tail -n 1; kill -9 $$ ;; esac\nexec {jq} "$@"\n')
        fake.chmod(0o755)
        run = self.run_example("shell/mirror", "copy", text=text, PATH=f"{self.folder}:{os.environ['PATH']}")
        self.assertEqual((run.returncode, "of 4 lines 1 were answered" in run.stdout), (1, True), run.stdout)
        self.assertEqual(self.mirrored(), files)

    def test_mirror_has_what_may_not_be_kept_readable_for_all_and_with_one_file_for_each_url(self) -> None:
        image = subprocess.run(["curl", "--silent", f"{self.origin.url}/image/1.png"], stdout=subprocess.PIPE).stdout
        data = [f"data:image/png;base64,{base64.b64encode(image + bytes([n])).decode()}" for n in range(2)]
        changing = f"{self.origin.url}/image/2.png?cache-control=no-store"
        late = self.folder / "late"  # As for a mirror that comes to the scratch files when their 60 seconds are over.
        late.write_text(f"""#!/bin/sh\n'{WORKER}' "$@" | sed 's|"path":"[^"]*"|"path":"/gone"|'\n""")
        late.chmod(0o755)
        run = self.run_example("shell/mirror", "copy", text="\n".join([*data, changing]), IMAGEWORKER=str(late))
        self.assertEqual(run.returncode, 0, run.stdout)
        foreign = self.folder / "copy" / "of the owner.txt"
        foreign.touch()
        self.assertEqual(len(self.mirrored()), 4)
        for name in self.mirrored() - {foreign.name}:
            self.assertEqual((self.folder / "copy" / name).stat().st_mode & 0o777, 0o666 & ~umask())
        self.origin.command({"do": "script", "target": changing[len(self.origin.url) :], "answers": ["/image/2.gif"]})
        self.assertEqual(self.run_example("shell/mirror", "copy", text="\n".join([*data, changing])).returncode, 0)
        self.assertEqual(sorted(name.rpartition(".")[2] for name in self.mirrored()), ["gif", "png", "png", "txt"])
        self.assertFalse((self.folder / "copy" / ".incoming").exists())

    def test_mirror_reports_what_cannot_be_put_into_its_place(self) -> None:
        url = f"{self.origin.url}/image/1.png"
        self.assertEqual(self.run_example("shell/mirror", "copy", text=url).returncode, 0)
        (name,) = self.mirrored()
        (self.folder / "copy" / name).unlink()
        (self.folder / "copy" / name / name).mkdir(parents=True)
        (self.folder / "copy" / name / "0").mkdir()  # `mv` cannot put the image, whose name is 0, into this folder either.
        run = self.run_example("shell/mirror", "copy", text=url)
        self.assertEqual((run.returncode, f"could not load {url}" in run.stdout), (3, True), run.stdout)

    def test_watch_shows_what_passes_and_passes_it_on(self) -> None:
        request = json.dumps({"id": 1, "method": "load", "params": {"url": f"{self.origin.url}/image/1.png"}})
        run = subprocess.run(
            [str(EXAMPLES / "shell" / "watch")],
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")},
            input=request,
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["result"]["format"], "png")
        self.assertIn('1 started {"attempt":1}', run.stderr)

    def test_watch_passes_a_batch_on(self) -> None:
        batch = [{"id": 1, "method": "pause"}, {"id": 2, "method": "nonsense"}]
        run = self.run_example("shell/watch", text=json.dumps(batch))
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("2 error methodNotFound: ", run.stdout)
        answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]
        self.assertEqual([sorted(answer["id"] for answer in batch) for batch in answers], [[1, 2]])

    def test_prefetch_sitemap_takes_the_images_that_it_names(self) -> None:
        pages = f"<url><loc>{self.origin.url}/page.html</loc><image:image><image:loc>{self.origin.url}/image/1.png?x-a=1&amp;x-b=2"
        sitemap = f"<urlset>{pages}</image:loc></image:image></url><url>\n<loc>{self.origin.url}/image/2.gif</loc></url></urlset>"
        run = self.prefetch_sitemap({"/sitemap.xml": sitemap.encode()})
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("2 downloaded, 0 cached, 0 failed", run.stdout)
        targets = {entry["target"] for entry in self.origin.command({"do": "log", "path": "/image"})["exchanges"]}
        self.assertEqual(targets, {"/image/1.png?x-a=1&x-b=2", "/image/2.gif"})

    def test_prefetch_sitemap_reads_xml_as_it_is_and_follows_an_index(self) -> None:
        def images(*locations: str) -> str:
            listed = "".join(f"<url><i:image><i:loc a='b'>{location}</i:loc></i:image></url>" for location in locations)
            return f"<?xml version='1.0'?><urlset xmlns='x' xmlns:i='y'>{listed}</urlset>"

        at = f"{self.origin.url}/image"
        pages = "".join(f"<url><loc>{at}/{name}</loc></url>" for name in ("5.png?x-v=1", "6.PNG/about", "7.gif.html"))
        run = self.prefetch_sitemap(
            {
                "/sitemap.xml": b"<sitemapindex>%b</sitemapindex>"
                % b"".join(b"<sitemap><loc>HOST/%d.xml</loc></sitemap>" % n for n in range(4)),
                "/0.xml": images(f"<![CDATA[{at}/1.png?x-a&x-b]]>", f"\n\t{at}/2.png\r\n", f"{at}/3.png?x-&#38;").encode("utf-16"),
                "/1.xml": gzip.compress(images(f"{at}/4.png").encode()),
                "/2.xml": f"<urlset><!-- <loc>{at}/8.png</loc> -->{pages}</urlset>".encode(),
                "/3.xml": b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + images(f"{at}/9.png").encode(),
            }
        )
        self.assertEqual((run.returncode, "/3.xml: it must not have a DOCTYPE" in run.stdout), (3, True), run.stdout)
        targets = {entry["target"] for entry in self.origin.command({"do": "log", "path": "/image"})["exchanges"]}
        expected = ["1.png?x-a&x-b", "2.png", "3.png?x-&", "4.png", "5.png?x-v=1"]
        self.assertEqual(targets, {f"/image/{name}" for name in expected})

    def test_prefetch_sitemap_of_a_page_loads_nothing(self) -> None:
        run = self.prefetch_sitemap({"/sitemap.xml": b"<html><body>not found</body></html>"})
        self.assertEqual((run.returncode, "its root must be <urlset>" in run.stdout), (3, True), run.stdout)
        self.assertNotIn("downloaded", run.stdout)

    def prefetch_sitemap(self, files: Mapping[str, bytes]) -> subprocess.CompletedProcess[str]:
        """In the files, HOST is the server that has them."""

        class Sitemaps(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = files[self.path].replace(b"HOST", f"http://127.0.0.1:{server.server_address[1]}".encode())
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sitemaps) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            run = self.run_example("shell/prefetch-sitemap", f"http://127.0.0.1:{server.server_address[1]}/sitemap.xml")
            server.shutdown()
        return run


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    unittest.main()

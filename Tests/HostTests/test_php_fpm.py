"""examples/php/ImageWorker.php under php-fpm, if it is installed, with requests by cgi-fcgi.

    apt-get install --no-install-recommends php-fpm libfcgi-bin
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlencode

from origin_process import PATIENCE
from package import ROOT
from processes import descendants
from test_uploads import Uploads, needs

try:
    from PIL import Image

    from upload_pictures import PDF, jpeg
except ModuleNotFoundError:
    pass

PAGE = Path(__file__).parent / "clients" / "fpm.php"
FPM: Optional[str] = next((str(path) for path in sorted(Path("/usr/sbin").glob("php-fpm*"))), None) or shutil.which("php-fpm")

POOL = """[global]
daemonize = no
error_log = {folder}/fpm.log
[site]
{user}
listen = {folder}/fpm.sock
pm = static
pm.max_children = {children}
php_admin_value[upload_tmp_dir] = {folder}
php_admin_value[display_errors] = 0
php_admin_value[max_execution_time] = 2
"""


def is_zombie(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True  # Or it is gone.


@needs()
@unittest.skipUnless(FPM and shutil.which("cgi-fcgi"), "php-fpm or cgi-fcgi is not installed")
class PHPFPM(Uploads):
    def fpm(self, children: int) -> subprocess.Popen[bytes]:
        root = os.getuid() == 0
        user = "user = root\ngroup = root" if root else ""
        (self.folder / "pool.conf").write_text(POOL.format(folder=self.folder, children=children, user=user))
        for page in (PAGE, ROOT / "examples" / "php" / "ImageWorker.php"):
            shutil.copy(page, self.folder)
        command = [str(FPM), *(["-R"] if root else []), "-n", "-y", str(self.folder / "pool.conf")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.terminate)
        self.until(lambda: (self.folder / "fpm.sock").exists() and len(descendants(process.pid)) == children)
        return process

    def request(self, content: bytes = b"", **query: str) -> tuple[int, Any]:
        query = {"binary": os.environ["IMAGEWORKER"], "to": str(self.media / f"{os.urandom(8).hex()}.jpg"), **query}
        head = b'--b\r\nContent-Disposition: form-data; name="picture"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
        body = head + content + b"\r\n--b--\r\n"
        environment = {
            "REQUEST_METHOD": "POST",
            "SCRIPT_FILENAME": str(self.folder / PAGE.name),
            "QUERY_STRING": urlencode(query),
            "CONTENT_TYPE": "multipart/form-data; boundary=b",
            "CONTENT_LENGTH": str(len(body)),
        }
        command = ["cgi-fcgi", "-bind", "-connect", str(self.folder / "fpm.sock")]
        run = subprocess.run(command, input=body, capture_output=True, env=environment, timeout=PATIENCE)
        fields, _, text = run.stdout.partition(b"\r\n\r\n")
        status = next((int(line.split()[1]) for line in fields.split(b"\r\n") if line.lower().startswith(b"status:")), 200)
        return status, json.loads(text) if text[:1] == b"{" else text

    def check_thumb(self, answer: Any) -> None:
        thumb = answer["answer"]["outputs"]["thumb"]
        self.assertEqual((answer["answer"]["width"], thumb["width"], thumb["height"]), (1600, 160, 213))

    def test_each_request_has_a_worker_that_ends_with_it(self) -> None:
        process = self.fpm(children=1)
        child = descendants(process.pid)
        workers = []
        for end in ("", "exit", "fault", ""):
            with self.subTest(end):
                status, answer = self.request(jpeg(1600, 1200, 6), do="process", **({"end": end} if end else {}))
                self.check_thumb(answer)
                self.assertEqual([answer["process"]], child)
                workers.append(answer["worker"])
                self.await_end([answer["worker"]])
                self.until(lambda: descendants(process.pid) == child)
        self.assertEqual(len(set(workers)), 4)
        for name in self.files(self.media):
            with Image.open(self.media / name) as picture:
                self.assertEqual((picture.size, dict(picture.getexif())), ((160, 213), {}))
        self.assertEqual(len(self.files(self.media)), 4)
        self.assertEqual([name for name in self.files(self.folder) if name.startswith("php")], [])

    def test_the_worker_of_a_request_that_takes_too_long_ends(self) -> None:
        """PHP does not wait for it then: it is a zombie until the child ends."""
        process = self.fpm(children=1)
        (child,) = descendants(process.pid)
        _, answer = self.request(jpeg(1600, 1200, 6), do="process", end="forever")
        self.check_thumb(answer)
        self.until(lambda: all(is_zombie(pid) for pid in descendants(process.pid) if pid != child))
        self.assertEqual(self.request(jpeg(), do="process")[0], 200)
        os.kill(child, signal.SIGTERM)
        self.await_end([child, answer["worker"]])

    def test_many_at_once_have_no_more_workers_than_there_are_children(self) -> None:
        process = self.fpm(children=2)
        children = descendants(process.pid)
        answers = self.at_once(12, lambda: self.request(jpeg(1600, 1200, 6), do="process"))
        for status, answer in answers:
            self.assertEqual(status, 200, answer)
            self.check_thumb(answer)
            self.assertIn(answer["process"], children)
        self.until(lambda: descendants(process.pid) == children)

    def test_a_refused_picture_is_an_error_of_its_request(self) -> None:
        self.fpm(children=1)
        for content, kind in ((PDF, "notAnImage"), (jpeg()[:20_000], "corrupt"), (b"hello", "notAnImage")):
            status, answer = self.request(content, do="process")
            self.assertEqual((status, answer["answer"]["kind"]), (422, kind))
        self.assertEqual(self.files(self.media), [])
        self.assertEqual(self.request(jpeg(), do="process")[0], 200)

    def test_the_environment_is_empty_so_the_program_has_to_be_named(self) -> None:
        self.fpm(children=1)
        status, answer = self.request(jpeg(), do="process", binary="")
        self.assertEqual(status, 422)
        self.assertIn("imageworker was not found", answer["answer"]["message"])

    def test_the_second_request_finds_what_the_first_has_cached(self) -> None:
        self.fpm(children=2)
        cache = str(self.folder / "cache")
        self.assertEqual(self.request(jpeg(), do="store", cache=cache)[0], 200)
        status, answer = self.request(do="query", cache=cache)
        self.assertEqual((status, answer["answer"]["disk"], answer["answer"]["bytes"]), (200, True, len(jpeg())))

    def test_the_worker_of_a_child_that_is_killed_ends(self) -> None:
        process = self.fpm(children=1)
        child = descendants(process.pid)
        note = self.media / "a.pid"
        with ThreadPoolExecutor(1) as pool:
            request = pool.submit(self.request, jpeg(), do="process", to=str(self.media / "a"), end="sleep")
            self.until(lambda: note.exists() and note.read_bytes().endswith(b"]"))
            its, worker = json.loads(note.read_bytes())
            self.assertEqual([its], child)
            os.kill(its, signal.SIGKILL)
            self.await_end([its, worker])
            request.result()
        self.until(lambda: len(descendants(process.pid)) == 1 and descendants(process.pid) != child)
        self.assertEqual(self.request(jpeg(), do="process")[0], 200)


if __name__ == "__main__":
    unittest.main()

"""A host that wants the pixels of images that its worker has: by a map of them, or out of `data` with Pillow.

Prints how many seconds of processor time the host took for it, and how many passed. One image after the other, to keep the
lines of `data` out of each other's way. The brightest of all values proves that they were there; both ways pay for it.
"""

import base64
import io
import json
import mmap
import os
import subprocess
import sys
import time

import numpy
import PIL.Image

worker, cache, way, urls = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]


def mapped(result):
    pixels = result["pixels"]
    with open(pixels["path"], "rb") as file:
        view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    shape = (pixels["height"], pixels["width"], pixels["channels"])
    return numpy.frombuffer(view, numpy.uint8, pixels["bytes"], pixels["offset"]).reshape(shape)


def decoded(result):
    return numpy.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(result["data"]))))


open_image = {"pixels": mapped, "data": decoded}[way]
process = subprocess.Popen([worker, "--cache-dir", cache], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
PIPE = 1 << 20


def call(method, **params):
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
    process.stdin.write(line.encode())
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "result" not in answer:
        sys.exit(f"not what was asked for: {answer}")
    return answer["result"]


def show(url):
    result = call("load", url=url, deliver=way)
    image = open_image(result)
    if image.shape != (result["height"], result["width"], 3):
        sys.exit(f"not the image that was asked for: {image.shape}")
    brightness = int(image.max())
    if way == "pixels":
        call("release", path=result["pixels"]["path"])
    return brightness


show(urls[0])
begun, before = time.perf_counter(), time.process_time()
brightest = [show(url) for url in urls]
spent, took = time.process_time() - before, time.perf_counter() - begun
process.stdin.close()
process.wait()
if min(brightest) < 128:
    sys.exit("these pixels are not the pictures'")
print(spent, took)

"""A stand-in for the worker that answers each load at once: it shows what a client costs by itself.

SAMPLE is the image that it saves as each output. WORKER is the real worker, which answers all but loads.
"""

import json
import os
import subprocess
import sys

sample, worker = os.environ["SAMPLE"], os.environ["WORKER"]
facts = {
    "cache": "miss", "bytes": 130_000, "mediaType": "image/jpeg", "format": "jpeg", "width": 800, "height": 600, "kept": False,
    "timing": {
        "queuedMs": 1.512, "lookupMs": 0.083, "resolveMs": 30.123, "connectMs": 0.512, "firstByteMs": 151.703, "bodyMs": 3.254,
        "transformMs": 4.511, "deliverMs": 0.131, "totalMs": 192.105,
    },
}  # fmt: skip
output = {"format": "jpeg", "mediaType": "image/jpeg", "width": 256, "height": 192, "bytes": os.path.getsize(sample)}
for line in sys.stdin.buffer:
    request = json.loads(line)
    if request["method"] != "load":
        command = [worker, *sys.argv[1:]]
        sys.stdout.buffer.write(subprocess.run(command, input=line, stdout=subprocess.PIPE, check=True).stdout)
    else:
        outputs = {}
        for name, wanted in request["params"].get("outputs", {}).items():
            os.link(sample, wanted["saveTo"])
            outputs[name] = {**output, "path": wanted["saveTo"]}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"url": request["params"]["url"], **facts, "outputs": outputs}}
        sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    sys.stdout.flush()

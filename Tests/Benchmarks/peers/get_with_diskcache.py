"""Gets the given number of values from a diskcache that holds the files of a folder, and prints the seconds it took."""

import sys
import time
from pathlib import Path

import diskcache

source, folder, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with diskcache.Cache(folder) as cache:
    keys = []
    with cache.transact():
        for path in Path(source).rglob("*.png"):
            keys.append(path.name)
            cache[path.name] = path.read_bytes()
    wanted = [keys[index % len(keys)] for index in range(count)]
    begun = time.perf_counter()
    length = 0
    for key in wanted:
        length += len(cache.get(key))
    took = time.perf_counter() - begun
if length != sum(path.stat().st_size for path in Path(source).rglob("*.png")) * count // len(keys):
    sys.exit("diskcache gave other bytes than it was given")
print(took)

"""Images of a list of URLs in a data set, as the documentation of Hugging Face `datasets` shows it for data sets of URLs.

    usual_hf.py LIST OUT SIZE PROCESSES
"""

import io
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import PIL.Image
from datasets import Dataset


def fetch_single_image(url, size):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            image = PIL.Image.open(io.BytesIO(answer.read()))
        image.thumbnail((size, size))
    except Exception:
        image = None
    return image


def fetch_images(batch, size):
    with ThreadPoolExecutor(max_workers=20) as executor:
        batch["image"] = list(executor.map(lambda url: fetch_single_image(url, size), batch["url"]))
    return batch


if __name__ == "__main__":
    names, out, size, processes = sys.argv[1:]
    urls = Dataset.from_dict({"url": open(names).read().split()})
    images = urls.map(fetch_images, batched=True, batch_size=100, fn_kwargs={"size": int(size)}, num_proc=int(processes))
    images.save_to_disk(out)

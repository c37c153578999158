"""Images of a list of URLs in Parquet files by Ray Data: its own `download`, and Pillow in `map_batches`.

    usual_ray.py LIST OUT SIZE
"""

import io
import sys

import PIL.Image
import ray
from ray.data.expressions import download


def scale(batch, size):
    images = []
    for content in batch.pop("bytes"):
        image = PIL.Image.open(io.BytesIO(content))
        image.thumbnail((size, size))
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=90)
        images.append(stream.getvalue())
    batch["image"] = images
    return batch


if __name__ == "__main__":
    names, out, size = sys.argv[1:]
    ray.init(logging_level="warning", include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    urls = ray.data.read_text(names).rename_columns({"text": "url"})
    images = urls.with_column("bytes", download("url")).map_batches(scale, fn_kwargs={"size": int(size)}, batch_size=100)
    images.write_parquet(out)

"""Images of a list of URLs in Parquet files by Daft's own expressions: download, decode, resize and encode.

    usual_daft.py LIST OUT WIDTH HEIGHT

Daft scales to a width and a height, and not into a box: the benchmark names those of its images.
"""

import sys

import daft

if __name__ == "__main__":
    names, out, width, height = sys.argv[1:]
    urls = daft.from_pydict({"url": open(names).read().split()})
    images = daft.col("url").download(on_error="null").decode_image(on_error="null").resize(int(width), int(height))
    urls.with_column("image", images.encode_image("jpeg")).write_parquet(out)

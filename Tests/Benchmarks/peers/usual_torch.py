"""Tensors of a list of URLs by a map-style Dataset with requests and Pillow, in the processes of a DataLoader.

    usual_torch.py LIST SIZE PROCESSES
"""

import io
import sys

import numpy
import PIL.Image
import requests
import torch


class Images(torch.utils.data.Dataset):
    def __init__(self, urls, size):
        self.urls = urls
        self.size = size
        self.session = None

    def __len__(self):
        return len(self.urls)

    def __getitem__(self, index):
        if self.session is None:
            self.session = requests.Session()
        content = self.session.get(self.urls[index], timeout=60).content
        image = PIL.Image.open(io.BytesIO(content))
        image.draft("RGB", (self.size, self.size))
        image = image.convert("RGB").resize((self.size, self.size), PIL.Image.Resampling.LANCZOS)
        return torch.from_numpy(numpy.array(image))


if __name__ == "__main__":
    names, size, processes = sys.argv[1:]
    images = Images(open(names).read().split(), int(size))
    batches = torch.utils.data.DataLoader(images, batch_size=64, num_workers=int(processes))
    print(sum(len(batch.permute(0, 3, 1, 2)) for batch in batches), "loaded")

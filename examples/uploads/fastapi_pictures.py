"""Uploads of pictures with FastAPI: each is one request to ImageWorker. See README.md.

    MEDIA=/srv/media uvicorn --app-dir examples/uploads fastapi_pictures:app
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any, AsyncIterator, Dict

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

from fastapi import FastAPI, Request, UploadFile  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from fastapi.responses import JSONResponse  # type: ignore[import-not-found, unused-ignore]  # noqa: E402

from imageworker import ImageWorker, ImageWorkerError, LoadError  # noqa: E402

MEDIA = Path(os.environ.get("MEDIA", "media")).resolve()
SIZES: Dict[str, Any] = {"large": {"width": 2048, "height": 2048}, "thumb": {"width": 320, "height": 320, "fit": "cover"}}
WANT: Any = {"formats": ["jpeg", "png", "webp", "heic"], "max_pixels": 50_000_000, "max_frames": 1}
BUSY = {"cancelled", "timeout", "shuttingDown", "overloaded"}
IN_MEMORY = 1 << 20
"""Starlette keeps an upload of up to this size in memory, and a larger one in a file without a name."""


@contextlib.asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    MEDIA.mkdir(parents=True, exist_ok=True)
    async with ImageWorker(memory_limit=0, disk_limit=0, max_bytes=20 << 20, deadline=30.0) as app.state.worker:
        yield


async def upload(request: Request, picture: UploadFile) -> Any:
    worker: ImageWorker = request.app.state.worker
    name = uuid.uuid4().hex
    folder = MEDIA / name
    folder.mkdir()
    outputs: Any = {size: {"transform": {**box, "format": "webp"}, "save_to": folder / f"{size}.webp"} for size, box in SIZES.items()}
    image = picture.file if (picture.size or 0) > IN_MEMORY else await picture.read()
    try:
        facts = await worker.process(image, want=WANT, validate="decode", facts=["digest"], placeholder=True, outputs=outputs)
    except BaseException:  # Also if the client has gone.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shown = facts.upright or facts  # A phone stores its pictures turned.
    return {
        "width": shown.width,
        "height": shown.height,
        "digest": facts.digest,
        "placeholder": facts.placeholder and facts.placeholder.thumbhash,
        "sizes": {size: {"path": f"{name}/{size}.webp", "width": file.width, "height": file.height} for size, file in facts.outputs.items()},
    }


async def refuse(request: Request, error: ImageWorkerError) -> Any:
    """503 if the same upload may succeed later, 422 with the figures if the picture is at fault, and otherwise 500."""
    if error.retryable or error.kind in BUSY:
        return JSONResponse({"kind": error.kind}, 503, {"Retry-After": str(math.ceil(error.retry_after or 1))})
    lacks_format = error.kind == "unsupportedFormat" and "output" in error.data
    if lacks_format or not isinstance(error, LoadError):
        raise error
    hidden = ("timing", "retryable")
    return JSONResponse({name: value for name, value in error.data.items() if name not in hidden}, 422)


app = FastAPI(lifespan=lifespan, exception_handlers={ImageWorkerError: refuse})
app.add_api_route("/pictures", upload, methods=["POST"], status_code=201)

"""A field for uploaded pictures in Django: checked and scaled by one request to ImageWorker. See README.md."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import sys
import uuid
import weakref
from pathlib import Path
from typing import Any, Optional

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))

from django.conf import settings  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: E402
from django.core.exceptions import ValidationError  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: E402
from django.db import models  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: E402
from django.db.models.fields.files import FieldFile  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: E402
from django.utils.translation import gettext_lazy as _  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: E402

from imageworker import BlockingImageWorker, ImageWorkerError, InvalidParams, LoadError  # noqa: E402

# It starts at the first upload, in each server process. It stores nothing, and so needs no cache directory.
worker = BlockingImageWorker(memory_limit=0, disk_limit=0, **getattr(settings, "IMAGEWORKER", {}))

BUSY = {"cancelled", "timeout", "shuttingDown", "overloaded"}
MESSAGES = {
    "busy": _("Pictures cannot be checked at the moment. Try again."),
    "notAnImage": _("This is not a picture, but %(detected)s."),
    "tooLarge": _("The file has %(bytes)s bytes. At most %(limit)s are allowed."),
    "tooManyPixels": _("The picture has %(width)s x %(height)s pixels. At most %(limit)s are allowed."),
    "maxPixels": _("The picture has %(width)s x %(height)s pixels. At most %(limit)s are allowed."),
    "formats": _("Pictures of the format %(format)s are not accepted."),
    "minWidth": _("The picture is %(width)s pixels wide. At least %(limit)s are needed."),
    "minHeight": _("The picture is %(height)s pixels high. At least %(limit)s are needed."),
    "corrupt": _("The picture is damaged."),
    "": _("This picture cannot be used."),
}


def refusal(error: ImageWorkerError) -> ValidationError:
    """A sentence made from the figures of the error, whose own message may change and is in English. An error that is the site's is raised again."""
    figures = dict(error.data)
    kind = figures.get("wanted") or error.kind
    of_output = "output" in figures
    if error.retryable or error.kind in BUSY:
        kind = "busy"
    elif error.kind == "unsupportedFormat" and of_output:
        raise error
    elif not isinstance(error, LoadError) and not (isinstance(error, InvalidParams) and of_output):  # Such as a crop outside the picture.
        raise error
    try:
        str(MESSAGES[kind]) % figures
    except KeyError:  # There is no sentence, or a figure is not known.
        kind = ""
    return ValidationError(MESSAGES[kind], kind or error.kind, figures)


class PictureFile(FieldFile):  # type: ignore[misc, unused-ignore]
    """The first of the field's sizes, as a file of the storage."""

    undo: Optional[weakref.finalize[Any, Any]] = None
    """Removes what an instance that is never saved has left behind, such as that of a form with a mistake in another field."""

    def of(self, size: str) -> FieldFile:
        return FieldFile(self.instance, self.field, self.name and posixpath.join(posixpath.dirname(self.name), f"{size}.webp"))

    def save(self, name: str, content: Any, save: bool = True) -> None:
        """Has the sizes of an upload written, all or none, below MEDIA_ROOT. Neither the upload nor its name is kept."""
        field, instance = self.field, self.instance
        # The worker opens a large upload by its path. A small one is in memory, and has none; `open` goes to its start.
        image = content.temporary_file_path() if hasattr(content, "temporary_file_path") else content.open().read()
        name = posixpath.join(posixpath.dirname(field.generate_filename(instance, "upload")), uuid.uuid4().hex)
        folder = Path(self.storage.path(name))
        undo = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        outputs: Any = {size: {"transform": {**box, "format": "webp"}, "save_to": folder / f"{size}.webp"} for size, box in field.sizes.items()}
        try:
            os.makedirs(folder)
            facts = worker.process(image, validate="decode", facts=["digest"], placeholder=True, outputs=outputs, **field.process)
        except ImageWorkerError as error:
            undo()
            raise refusal(error) from error
        shown = facts.upright or facts
        known = {"width": shown.width, "height": shown.height, "digest": facts.digest, "placeholder": facts.placeholder and facts.placeholder.thumbhash}
        for fact, attribute in field.facts.items():
            setattr(instance, attribute, known[fact])
        self.undo, self.name, self._committed = undo, posixpath.join(name, f"{next(iter(field.sizes))}.webp"), True
        if hasattr(self, "_file"):
            del self.file
        setattr(instance, field.attname, self)
        if save:
            instance.save()

    def delete(self, save: bool = True) -> None:
        """Removes all sizes, and their folder."""
        if not self or not self._committed:
            return super().delete(save)  # type: ignore[no-any-return, unused-ignore]
        for size in self.field.sizes:
            self.storage.delete(self.of(size).name)
        folder = os.path.dirname(self.path)
        super().delete(save)
        with contextlib.suppress(OSError):
            os.rmdir(folder)


class PictureField(models.FileField):  # type: ignore[misc, unused-ignore]
    """A FileField that keeps `sizes` (a Transform by name, the largest first) of an upload as WebP, and not the upload: no EXIF is left.

    `facts` names the fields of the model for `width` and `height` (of the upload, as shown), `digest`, and `placeholder` (a ThumbHash). `want`,
    `max_bytes` and others are parameters of ImageWorker's `process`.
    """

    attr_class = PictureFile

    def __init__(self, *args: Any, sizes: Any = None, facts: Any = None, process: Any = None, **options: Any) -> None:
        self.sizes, self.facts, self.process = sizes or {}, facts or {}, process or {}
        super().__init__(*args, **options)

    def deconstruct(self) -> Any:
        name, path, arguments, options = super().deconstruct()
        return name, path, arguments, {**options, "sizes": self.sizes, "facts": self.facts, "process": self.process}

    def run_validators(self, value: Any) -> None:
        """Validators see the upload, and not the files that are made of it."""
        if not value or not value._committed:
            super().run_validators(value)

    def clean(self, value: Any, instance: Any) -> Any:
        picture = super().clean(value, instance)
        if picture and not picture._committed:
            picture.save(picture.name, picture.file, save=False)
        return picture

    def pre_save(self, instance: Any, add: bool) -> Any:
        picture = super().pre_save(instance, add)  # Saves an upload if nobody has called full_clean.
        if picture.undo is not None:
            picture.undo.detach()
        return picture

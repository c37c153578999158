"""The worker's pictures beside Chromium's: each difference over 2 of 255 has a reason in `picture_cases.py`."""

from __future__ import annotations

import unittest

from browser import CHROMIUM
from chaos_session import default_worker

try:
    # They need numpy and Pillow.
    import compare_pictures
    import picture_cases
except ImportError as error:
    MISSING: str = str(error)
else:
    MISSING = ""


@unittest.skipIf(MISSING != "", MISSING)
@unittest.skipIf(CHROMIUM is None, "there is no Chromium here")
class Pictures(unittest.TestCase):
    def test_pictures_are_those_of_chromium(self) -> None:
        rows = compare_pictures.measure(default_worker())
        self.assertGreater(len(rows), 150)
        differing = [row for row in rows if row.worst > 2]
        print(f"\n{compare_pictures.table(differing)}")
        for reason in picture_cases.missing():
            print(f"skipped: {reason} is not installed")
        self.assertEqual([], [row.name for row in differing if not row.is_explained])


if __name__ == "__main__":
    unittest.main()

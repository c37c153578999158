// What examples/gallery makes itself, against the built worker: its JPEGs, and the pictures that ThumbHashes stand for.
// test_gallery_server.py runs this.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { progressiveJPEG } from "../../examples/gallery/jpeg.mjs";
import { paint, side } from "../../examples/gallery/pictures.mjs";
import { pictureOf } from "../../examples/gallery/thumbhash.mjs";
import { ImageWorker } from "../../examples/node/imageworker.mjs";

const folder = mkdtempSync(join(tmpdir(), "imageworker-"));
const worker = new ImageWorker({ cacheDir: join(folder, "cache") });
after(async () => {
  await worker.close();
  rmSync(folder, { recursive: true });
});

const jpegOf = (painted, width = side, height = side) => Buffer.concat([...progressiveJPEG(painted, width, height)]);

const load = (jpeg, params) => worker.load(`data:image/jpeg;base64,${jpeg.toString("base64")}`, params);

/** R G B, row by row. */
async function decoded(jpeg) {
  const image = await load(jpeg, { deliver: "pixels", validate: "decode" });
  assert.deepEqual([image.pixels.channels, image.pixels.stride], [3, 3 * image.width]);
  return { width: image.width, height: image.height, pixels: await worker.takePixels(image) };
}

/** How far colours are from each other, on average. */
function distance(some, others) {
  return some.reduce((sum, value, at) => sum + Math.abs(value - others[at]), 0) / some.length;
}

/** A part of a painted picture: from its left edge, and from a quarter of its height down. */
function part(painted, width, height) {
  const rows = Array.from({ length: height }, (_, y) => 3 * side * (side / 4 + y));
  return Uint8Array.from(rows.flatMap((at) => [...painted.subarray(at, at + 3 * width)]));
}

test("a picture decodes to what was painted", async () => {
  for (let n = 0; n < 5; n++) {
    const painted = paint(n);
    const picture = await decoded(jpegOf(painted));
    assert.deepEqual([picture.width, picture.height], [side, side]);
    assert.ok(distance(painted, picture.pixels) < 3, `${n}: ${distance(painted, picture.pixels)}`);
  }
});

test("a JPEG may have any size, and the strongest contrasts", async () => {
  const noise = Uint8Array.from({ length: 3 * 64 * 64 }, (_, at) => (Math.imul(at + 1, 2654435761) >>> 20) & 255);
  const board = Uint8Array.from({ length: 3 * 64 * 64 }, (_, at) => (((at / 24) ^ (at / 1536)) & 1) * 255);
  for (const [width, height, painted, most] of [
    [1, 1, Uint8Array.of(200, 100, 50), 3],
    [13, 9, part(paint(1), 13, 9), 3],
    [200, 17, part(paint(2), 200, 17), 3],
    [64, 64, board, 3],
    [64, 64, noise, 12],
  ]) {
    const picture = await decoded(jpegOf(painted, width, height));
    assert.deepEqual([picture.width, picture.height], [width, height]);
    assert.ok(distance(painted, picture.pixels) < most, `${width} x ${height}: ${distance(painted, picture.pixels)}`);
  }
});

test("its first scan is worth a preview", async () => {
  const painted = paint(0);
  const [head, means, ...rest] = progressiveJPEG(painted, side, side);
  let goOn;
  const server = createServer((_, response) => {
    response.write(head);
    response.write(means);
    goOn = () => response.end(Buffer.concat(rest));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    let preview;
    await worker.load(`http://127.0.0.1:${server.address().port}/`, {
      events: ["preview"],
      onEvent: ({ params }) => {
        preview ??= params;
        goOn();
      },
    });
    assert.deepEqual([preview.width, preview.height, preview.scan], [side, side, 1]);
    const shown = await decoded(readFileSync(preview.path));
    assert.ok(distance(painted, shown.pixels) < 10, String(distance(painted, shown.pixels)));
  } finally {
    server.close();
  }
});

test("a ThumbHash is a picture like the one that it stands for", async () => {
  for (const [width, height] of [
    [64, 64],
    [64, 37],
    [27, 64],
  ]) {
    // Redder on the left, bluer at the bottom.
    const painted = Uint8Array.from({ length: 3 * width * height }, (_, at) => {
      const [x, y] = [Math.floor(at / 3) % width, Math.floor(at / 3 / width)];
      return 128 + [80 * Math.cos((Math.PI * x) / width), 0, -80 * Math.cos((Math.PI * y) / height)][at % 3];
    });
    const { placeholder } = await load(jpegOf(painted, width, height), { placeholder: true });
    const picture = pictureOf(placeholder.thumbhash, 64);
    assert.deepEqual([picture.width, picture.height], [width, height]);
    const colours = picture.pixels.filter((_, at) => at % 4 < 3);
    assert.ok(distance(painted, colours) < 16, String(distance(painted, colours)));
    for (const channel of [0, 1, 2]) {
      const values = colours.filter((_, at) => at % 3 === channel);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const expected = parseInt(placeholder.color.slice(1 + 2 * channel, 3 + 2 * channel), 16);
      assert.ok(Math.abs(mean - expected) < 6, `${width} x ${height}, ${channel}: ${mean}, not ${expected}`);
    }
  }
});

test("a ThumbHash has the corners of its image, and the pixels that other decoders make of it", async () => {
  const { placeholder } = await load(jpegOf(paint(0)), { transform: { format: "png", cornerRadius: side }, placeholder: true });
  const { pixels } = pictureOf(placeholder.thumbhash);
  assert.ok(pixels[3] < 60 && pixels[4 * (16 * 32 + 16) + 3] > 220, `${pixels[3]}`);

  // The example of its home page.
  const field = pictureOf("3OcRJYB4d3h/iIeHeEh3eIhw+j3A");
  assert.deepEqual([field.width, field.height], [32, 23]);
  for (const [place, expected] of [
    [0, [125, 137, 159, 255]],
    [11 * 32 + 16, [113, 125, 139, 255]],
    [22 * 32, [91, 103, 39, 255]],
    [22 * 32 + 31, [87, 99, 46, 255]],
  ]) {
    const found = [...field.pixels.subarray(4 * place, 4 * place + 4)];
    assert.ok(distance(expected, found) <= 1, String(found));
  }
});

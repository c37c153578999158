/** Pictures for a gallery without a list. They are painted when they are requested, and served as slowly as by a distant server. */

import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

import { progressiveJPEG } from "./jpeg.mjs";

/**
 * Serves `count` pictures on a free port. Resolves to the URL and the cache key of each.
 * @param {number} count
 * @returns {Promise<{ url: string, key: string }[]>}
 */
export async function servePictures(count) {
  const server = createServer((request, response) => {
    const n = Number(/^\/(\d+)\.jpg$/.exec(request.url)?.[1] ?? NaN);
    if (!(n < count)) return response.writeHead(404).end();
    drip(response, [...progressiveJPEG(paint(n), side, side)], 25 + ((n * 7919) % 75));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  const { port } = server.address();
  return Array.from({ length: count }, (_, n) => ({
    url: `http://127.0.0.1:${port}/${n}.jpg`,
    key: `examples/gallery/${n}.jpg`, // The next server has another port, and the same pictures.
  }));
}

/** Sends the pieces with a pause before each. */
async function drip(response, pieces, milliseconds) {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  response.writeHead(200, { "Content-Type": "image/jpeg", "Content-Length": length, "Cache-Control": "max-age=604800" });
  for (const piece of pieces) {
    await pause(milliseconds);
    if (response.destroyed) return;
    response.write(piece);
  }
  response.end();
}

/** Width and height of a picture. */
export const side = 320;

/**
 * Paints hills with trees before a sky. The number decides the colours.
 * @param {number} n
 * @returns {Uint8Array} R G B, row by row
 */
export function paint(n) {
  const random = generator(n + 1);
  const [sky, ground] = [colour(random()), colour(random())];
  const hills = Array.from({ length: 3 }, (_, index) => {
    const [phase, height, wave] = [random() * 7, 0.1 + random() * 0.15, 1 + random() * 3];
    const hill = (x) => 0.45 + 0.17 * index + height * Math.sin(phase + Math.PI * wave * x);
    const trees = (x) => 0.015 * (1 + index) * Math.sqrt(Math.abs(Math.sin(60 * x)));
    return { top: (x) => hill(x) - trees(x), light: 1 - 0.25 * index };
  });
  const pixels = new Uint8Array(3 * side * side);
  for (let x = 0; x < side; x++) {
    /** Paints the column below `top`. Nearer hills are painted over farther ones. */
    const fill = (top, base, light) => {
      for (let y = Math.max(0, Math.ceil(side * top)); y < side; y++) {
        const strength = light(y / side);
        const at = 3 * (y * side + x);
        for (let channel = 0; channel < 3; channel++) pixels[at + channel] = strength * base[channel];
      }
    };
    fill(0, sky, (y) => 1 - 0.5 * y);
    for (const { top, light } of hills) fill(top(x / side), ground, () => light);
  }
  return pixels;
}

/** Numbers from 0 to 1, the same for the same seed (xorshift32). */
function generator(seed) {
  let state = seed * 2654435761;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

function colour(hue) {
  return [0, 1, 2].map((channel) => 150 + 90 * Math.cos(2 * Math.PI * (hue - channel / 3)));
}

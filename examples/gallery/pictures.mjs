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
 * Paints a sun and three chains of hills with trees. The number decides shapes and colours.
 * @param {number} n
 * @returns {Uint8Array} R G B, row by row
 */
export function paint(n) {
  const random = generator(n + 1);
  const hue = random();
  const [sky, ground] = [colour(hue), colour(hue + 0.2 + 0.6 * random())];
  const haze = mix(sky, [255, 250, 240], 0.75);
  const sun = { x: 0.2 + 0.6 * random(), y: 0.15 + 0.2 * random(), radius: 0.05 + 0.05 * random() };
  const hills = Array.from({ length: 3 }, (_, index) => {
    const [phase, height, wave] = [random() * 7, 0.06 + random() * 0.1, 1 + random() * 2];
    const hill = (x) => 0.5 + 0.17 * index + height * Math.sin(phase + Math.PI * wave * x);
    const trees = (x) => 0.012 * index * Math.sqrt(Math.abs(Math.sin((70 - 15 * index) * x + phase)));
    const shade = mix(mix(ground, [20, 30, 40], 0.3 * index), haze, 0.55 - 0.25 * index);
    return { top: (x) => hill(x) - trees(x), shade };
  });
  const pixels = new Uint8Array(3 * side * side);
  for (let x = 0; x < side; x++) {
    /** Paints the column from `top` to `bottom`. Nearer hills are painted over farther ones. */
    const fill = (top, bottom, shadeAt) => {
      for (let y = Math.max(0, Math.ceil(side * top)); y < Math.min(side, side * bottom); y++) {
        pixels.set(shadeAt(y / side), 3 * (y * side + x));
      }
    };
    fill(0, 1, (y) => mix(sky, haze, Math.min(1, 1.4 * y)));
    const reach = Math.sqrt(Math.max(0, sun.radius ** 2 - (x / side - sun.x) ** 2));
    fill(sun.y - reach, sun.y + reach, () => [255, 244, 214]);
    for (const { top, shade } of hills) fill(top(x / side), 1, () => shade);
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
  return [0, 1, 2].map((channel) => 140 + 65 * Math.cos(2 * Math.PI * (hue - channel / 3)));
}

/** A colour between two: the first for 0, the other for 1. */
function mix(some, other, part) {
  return some.map((value, channel) => value + part * (other[channel] - value));
}

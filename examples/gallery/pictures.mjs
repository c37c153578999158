/** Pictures to look at where there is no list: painted when they are asked for, and as slow as a distant server. */

import { createServer } from "node:http";
import { deflateSync } from "node:zlib";

/**
 * Serves `count` pictures on a free port. Resolves to their URLs.
 * @param {number} count
 * @returns {Promise<string[]>}
 */
export async function servePictures(count) {
  const server = createServer((request, response) => {
    const n = Number(/^\/(\d+)\.png$/.exec(request.url)?.[1] ?? NaN);
    if (!(n < count)) return response.writeHead(404).end();
    const timer = setTimeout(() => {
      response.writeHead(200, { "Content-Type": "image/png", "Cache-Control": "max-age=3600" });
      response.end(paint(n));
    }, 50 + ((n * 7919) % 250));
    response.once("close", () => clearTimeout(timer));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  const { port } = server.address();
  return Array.from({ length: count }, (_, n) => `http://127.0.0.1:${port}/${n}.png`);
}

/** Hills before a sky, in colours of the number's own: a PNG of 480 x 480 (PNG specification, third edition). */
function paint(n) {
  const side = 480;
  const random = generator(n + 1);
  const [sky, ground] = [colour(random()), colour(random())];
  const hills = Array.from({ length: 3 }, () => ({ phase: random() * 7, height: 0.1 + random() * 0.15, wave: 1 + random() * 3 }));
  const rows = Buffer.alloc((3 * side + 1) * side);
  for (let x = 0; x < side; x++) {
    const tops = hills.map(({ phase, height, wave }, index) => {
      const level = 0.45 + 0.17 * index;
      return (level + height * Math.sin(phase + (wave * x * Math.PI) / side)) * side;
    });
    for (let y = 0; y < side; y++) {
      const behind = tops.findLastIndex((top) => y > top);
      const shade = behind < 0 ? 1 - (0.5 * y) / side : 1 - 0.25 * behind;
      const [base, at] = [behind < 0 ? sky : ground, y * (3 * side + 1) + 1 + 3 * x];
      for (let channel = 0; channel < 3; channel++) rows[at + channel] = base[channel] * shade;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2, 0, 0, 0], 8); // 8 bits, R G B
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature, chunk("IHDR", header), chunk("IDAT", deflateSync(rows, { level: 1 })), chunk("IEND", Buffer.alloc(0)),
  ]);
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

function chunk(type, data) {
  const content = Buffer.concat([Buffer.from(type), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(content));
  return Buffer.concat([length, content, check]);
}

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = crcTable[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

#!/usr/bin/env node
// Uploads of pictures in Node, without a library: each is one request to ImageWorker. See README.md.
//
//     MEDIA=/srv/media SPOOL=/srv/spool PORT=8080 examples/uploads/upload.mjs
//     curl --data-binary @photo.jpg http://127.0.0.1:8080/pictures

import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ImageWorker, ImageWorkerError } from "../node/imageworker.mjs";

const media = resolve(process.env.MEDIA ?? "media");
const spool = resolve(process.env.SPOOL ?? "spool");
const maxBytes = 20 << 20;
const sizes = { large: { width: 2048, height: 2048 }, thumb: { width: 320, height: 320, fit: "cover" } };
const want = { formats: ["jpeg", "png", "webp", "heic"], maxPixels: 50_000_000, maxFrames: 1 };
const statuses = { tooLarge: 413, notAnImage: 415, unsupportedFormat: 415, tooManyPixels: 422, unwanted: 422, corrupt: 422, decoderCrashed: 422, decodeTimeout: 422 };
const busy = new Set(["cancelled", "timeout", "shuttingDown", "overloaded"]);

await mkdir(media, { recursive: true });
await mkdir(spool, { recursive: true });
const worker = new ImageWorker({ memoryLimit: 0, diskLimit: 0, maxBytes, files: spool, deadlineMs: 30_000, onLog: (line) => console.error(line) });

const server = createServer(async (request, response) => {
  if (request.method !== "POST" || request.url !== "/pictures") return answer(response, 404, {});
  if (Number(request.headers["content-length"]) > maxBytes) return refuseSize(response);
  const name = randomUUID();
  const gone = new AbortController(); // Ends the decode of a client that has gone.
  response.once("close", () => gone.abort());
  try {
    await pipeline(request, atMost(maxBytes), createWriteStream(join(spool, name), { flags: "wx", mode: 0o600 }));
    answer(response, 201, await take(name, gone.signal));
  } catch (error) {
    if (response.destroyed) return;
    if (error instanceof RangeError) return refuseSize(response);
    refuse(response, error);
  } finally {
    await rm(join(spool, name), { force: true });
  }
});

/** Writes all sizes of the spooled file, or none. */
async function take(name, signal) {
  const folder = join(media, name);
  await mkdir(folder);
  try {
    const outputs = Object.fromEntries(
      Object.entries(sizes).map(([size, box]) => [size, { transform: { ...box, format: "webp" }, saveTo: join(folder, `${size}.webp`) }]),
    );
    const file = { root: spool, path: name };
    const facts = await worker.process({ file, want, validate: "decode", facts: ["digest"], placeholder: true, outputs }, { signal });
    const { width, height } = facts.upright ?? facts; // A phone stores its pictures turned.
    const files = Object.entries(facts.outputs).map(([size, { width, height }]) => [size, { path: `${name}/${size}.webp`, width, height }]);
    return { width, height, digest: facts.digest, placeholder: facts.placeholder, sizes: Object.fromEntries(files) };
  } catch (error) {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 }); // A cancelled output may still come.
    throw error;
  }
}

function atMost(limit) {
  let received = 0;
  return new Transform({
    transform(chunk, _, done) {
      received += chunk.length;
      done(received > limit ? new RangeError("the body is too large") : null, chunk);
    },
  });
}

/** 503 if the same upload may succeed later, 4xx with the figures if the picture is at fault, and otherwise 500. */
function refuse(response, error) {
  if (!(error instanceof ImageWorkerError)) return answer(response, 500, { kind: "internal" }, console.error(error));
  const { timing, retryable, ...figures } = error.data ?? {};
  if (error.retryable || busy.has(error.kind)) {
    response.setHeader("Retry-After", Math.ceil((figures.retryAfterMs ?? 1000) / 1000));
    return answer(response, 503, { kind: error.kind });
  }
  const lacksFormat = error.kind === "unsupportedFormat" && figures.output !== undefined;
  if (lacksFormat || !statuses[error.kind]) return answer(response, 500, { kind: error.kind }, console.error(error));
  answer(response, statuses[error.kind], figures);
}

function refuseSize(response) {
  response.setHeader("Connection", "close"); // The rest of the body is not read.
  answer(response, 413, { kind: "tooLarge", limit: maxBytes });
}

function answer(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

process.once("SIGTERM", () => server.close(() => worker.close()));
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/pictures`));

#!/usr/bin/env node
// Loads the URLs given as arguments, all at once, and prints what became of each. Exits 1 if one failed.

import { ImageWorker, ImageWorkerError } from "./imageworker.mjs";

const urls = process.argv.slice(2);
if (urls.length === 0 || urls[0].startsWith("-")) {
  console.error("usage: demo.mjs URL...");
  process.exit(64);
}

process.stdout.on("error", () => process.exit(74)); // Nobody reads it any more, as under `| head`.

let worker;
try {
  worker = new ImageWorker();
} catch (error) {
  console.error(`demo.mjs: ${error.message}`);
  process.exit(69);
}

async function show(url) {
  try {
    const image = await worker.load(url, {
      onEvent({ name, params }) {
        if (name === "progress") console.log(`${params.received} of ${params.total ?? "?"} bytes  ${url}`);
      },
    });
    const size = image.width ? `${image.width} x ${image.height}` : "size unknown";
    console.log(`${image.cache}  ${image.format} ${size}  ${image.path}`);
  } catch (error) {
    if (!(error instanceof ImageWorkerError)) throw error;
    console.error(`${error.kind}: ${error.message}  ${url}`);
    process.exitCode = error.data.exitStatus === null ? 69 : 1; // Null is that of a worker that did not start.
  }
}

try {
  await Promise.all(urls.map(show));
} finally {
  await worker.close();
}

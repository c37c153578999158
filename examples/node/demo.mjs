#!/usr/bin/env node
// Loads the URLs given as arguments, all at once, and prints what became of each.

import { ImageWorker, ImageWorkerError } from "./imageworker.mjs";

const urls = process.argv.slice(2);
if (urls.length === 0) {
  console.error("usage: demo.mjs URL...");
  process.exit(64);
}

const worker = new ImageWorker();

async function show(url) {
  try {
    const image = await worker.load(url, {
      onEvent({ name, params }) {
        if (name === "progress") console.log(`${params.received} of ${params.total ?? "?"} bytes  ${url}`);
      },
    });
    console.log(`${image.cache}  ${image.format} ${image.width} x ${image.height}  ${image.path}`);
  } catch (error) {
    if (!(error instanceof ImageWorkerError)) throw error;
    console.error(`${error.kind}: ${error.message}  ${url}`);
    process.exitCode = 1;
  }
}

try {
  await Promise.all(urls.map(show));
} finally {
  await worker.close();
}

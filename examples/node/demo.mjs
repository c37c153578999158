#!/usr/bin/env node
// Loads the URLs given as arguments, all at once, and prints the outcome of each. Exits with 1 if a load failed, and with 69 if
// the worker cannot be started.

import { ImageWorker } from "./imageworker.mjs";

const urls = process.argv.slice(2);
if (urls.length === 0 || urls[0].startsWith("-")) {
  console.error("usage: demo.mjs URL...");
  process.exit(64);
}

process.stdout.on("error", () => process.exit(74)); // Standard output was closed, as by `| head`.

const worker = new ImageWorker();
await worker.ready.catch((error) => {
  console.error(`demo.mjs: ${error.message}`);
  process.exit(69);
});

function onEvent({ name, params }) {
  if (name === "progress") console.log(`${params.received} of ${params.total ?? "?"} bytes  ${params.url}`);
}

for await (const { url, image, error } of worker.loadAll(urls, { onEvent })) {
  if (error) {
    console.error(`${error.kind}: ${error.message}  ${url}`);
    process.exitCode = 1;
  } else {
    const size = image.width ? `${image.width} x ${image.height}` : "size unknown";
    console.log(`${image.cache}  ${image.format} ${size}  ${image.path}`);
  }
}
await worker.close();

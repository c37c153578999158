// Loads the URLs of a list until there have been so many loads, so many at once, and prints how many seconds that took.
//
// Every URL is loaded once before, so that the worker has it in memory. Each answer is checked as it comes.

import { readFileSync } from "node:fs";

import { ImageWorker } from "../../examples/node/imageworker.mjs";

const [binary, source, count, , atOnce, deliver, size, cache] = process.argv.slice(2);
const urls = readFileSync(source, "utf8").split("\n").filter(Boolean);
const worker = new ImageWorker({ binary, cacheDir: cache });
await Promise.all(urls.map((url) => worker.load(url, { deliver })));

let next = 0;
const loadSome = async () => {
  while (next < Number(count)) {
    const image = await worker.load(urls[next++ % urls.length], { deliver });
    if (image.cache !== "memory" || image.bytes !== Number(size) || (image.path !== undefined) !== (deliver === "path")) {
      throw new Error(`not what was asked for: ${JSON.stringify(image)}`);
    }
  }
};
const begun = performance.now();
await Promise.all(Array.from({ length: Number(atOnce) }, loadSome));
console.log((performance.now() - begun) / 1000);
await worker.close();

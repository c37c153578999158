#!/usr/bin/env node
/**
 * A page that scrolls through thousands of images. The browser reports the images on its screen. The worker loads these first
 * and images near the screen next. Loads of all other images are cancelled.
 *
 *     server.mjs [--list FILE] [--pictures 2000] [--port 8080] [--side 240] [-- WORKER OPTIONS]
 *
 * --list FILE     file with the URLs of the images, one a line
 * --pictures N    number of pictures to paint if there is no list; a second port serves them slowly
 * --port N        port of the page; 0 is any free port
 * --side PIXELS   width and height of the thumbnails
 */

import { randomUUID } from "node:crypto";
import { open } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { ImageWorker } from "../node/imageworker.mjs";
import { end, options } from "./options.mjs";
import { servePictures } from "./pictures.mjs";

const { list, pictures, port, side, workerOptions } = options(fileURLToPath(import.meta.url));
const images = list?.map((url) => ({ url })) ?? (await servePictures(pictures));
const { worker, formats } = await startWorker();
/** Without a decoder, the browser gets the original images. */
const look = formats.encode.includes("jpeg")
  ? { transform: { width: side, height: side, fit: "cover", format: "jpeg" }, placeholder: true }
  : {};

/** Waits until the worker is ready, so that a wrong option or an unusable cache directory is reported before there is a page. */
async function startWorker() {
  try {
    const worker = new ImageWorker({ arguments: workerOptions });
    await worker.ready;
    const { formats } = await worker.call("initialize", { formats: true });
    return { worker, formats };
  } catch (error) {
    return end(error.exitStatus > 0 ? error.exitStatus : 69, error.message);
  }
}

/** ThumbHashes of the images that have been loaded, by number. A page shows them first. */
const placeholders = new Map();

async function load(n, params) {
  const image = await worker.load(images[n].url, { key: images[n].key, ...look, ...params });
  if (image.placeholder) placeholders.set(n, image.placeholder.thumbhash);
  return image;
}

/** Files that pages may fetch, by the path of their URL. A file stays for a minute, and a page fetches it at once. */
const files = new Map();
function publish(path) {
  const name = `/file/${randomUUID()}${extname(path)}`;
  files.set(name, path);
  setTimeout(() => files.delete(name), 60_000).unref();
  return name;
}

/** An open page with its loads. */
class Page {
  id = randomUUID();
  #stream;
  #wanted = new Map();

  constructor(stream) {
    this.#stream = stream;
  }

  /** Sends an event. If the page does not read, its stream is closed before the memory is full. A live page reconnects. */
  tell(event) {
    if (this.#stream.writableLength > 2 ** 20) this.#stream.destroy();
    else this.#stream.write(`data: ${JSON.stringify(event)}\n\n`);
  }

  /** Sends an event that the next one of its kind replaces. */
  tellIfItReads(event) {
    if (!this.#stream.writableNeedDrain) this.tell(event);
  }

  /**
   * Starts, moves and cancels loads. `shown` and `near` are the numbers of the images on the screen and near it, in the order of
   * the page. `again` are the numbers of the images to load again.
   */
  look({ shown, near, again }) {
    // In this order, because the worker starts a load when it reads it, if there is room.
    const keep = new Map(shown.map((n) => [n, "high"]));
    for (const n of near) if (!keep.has(n)) keep.set(n, "low");
    for (const [n, want] of this.#wanted) {
      if (keep.has(n)) continue;
      this.#wanted.delete(n);
      want.left.abort();
      if (!want.isDone) this.tell({ n, cancelled: true });
    }
    for (const n of again) if (this.#wanted.get(n)?.isDone) this.#wanted.delete(n);
    for (const [n, priority] of keep) {
      const want = this.#wanted.get(n);
      if (priority === "high" && !want?.isShown) this.#show(n, want);
      else if (!want) this.#prepare(n);
      else if (want.isShown) this.#move(want, priority);
    }
  }

  /** An image that left the screen but is near is still loaded, after the images on the screen. */
  #move(want, priority) {
    if (want.isDone || want.priority === priority) return;
    want.priority = priority;
    worker.notify("prioritize", { group: want.group, priority });
  }

  /** The worker coalesces this load with the one that prepared it, at the higher priority. */
  async #show(n, prepared) {
    const group = `${this.id}/${n}`;
    const left = prepared?.left ?? new AbortController();
    const want = { isShown: true, priority: "high", group, left, isDone: false };
    this.#wanted.set(n, want);
    try {
      const { path, cache } = await load(n, {
        priority: "high",
        group,
        signal: left.signal,
        events: ["preview"],
        onEvent: ({ params }) => this.tell({ n, preview: publish(params.path) }),
      });
      this.tell({ n, placeholder: placeholders.get(n), image: publish(path), cache });
    } catch (error) {
      if (!left.signal.aborted) this.tell({ n, error: error.message, retryable: error.retryable });
    }
    want.isDone = true;
  }

  async #prepare(n) {
    const want = { isShown: false, left: new AbortController(), isDone: false };
    this.#wanted.set(n, want);
    try {
      await load(n, { priority: "low", deliver: "none", signal: want.left.signal });
      this.tell({ n, placeholder: placeholders.get(n) });
    } catch {
      // The load for the screen reports the error.
    }
    want.isDone = true;
  }

  leave() {
    for (const { left } of this.#wanted.values()) left.abort();
    this.#wanted.clear();
  }
}

const pages = new Map();

const types = { ".html": "text/html; charset=utf-8", ".mjs": "text/javascript", ".jpg": "image/jpeg", ".svg": "image/svg+xml" };

async function sendFile(response, path, cacheControl) {
  const file = await open(path);
  const extension = extname(path);
  response.writeHead(200, {
    "Content-Type": types[extension] ?? `image/${extension.slice(1)}`,
    "Cache-Control": cacheControl,
    // An untrusted image must not run as a page of this server.
    "Content-Security-Policy": extension === ".html" ? "default-src 'self' 'unsafe-inline'" : "sandbox",
    "X-Content-Type-Options": "nosniff",
  });
  await pipeline(file.createReadStream(), response);
}

async function body(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > 1 << 20) throw new Error("the request is too long");
  }
  return JSON.parse(text);
}

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname === "/" || pathname === "/thumbhash.mjs") {
    const name = pathname.slice(1) || "page.html";
    await sendFile(response, fileURLToPath(new URL(name, import.meta.url)), "no-store");
  } else if (pathname === "/list") {
    response.end(JSON.stringify({ count: images.length, side, placeholders: Object.fromEntries(placeholders) }));
  } else if (pathname === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const page = new Page(response);
    pages.set(page.id, page);
    page.tell({ page: page.id });
    response.once("close", () => {
      pages.delete(page.id);
      page.leave();
    });
  } else if (pathname === "/look" && request.method === "POST") {
    const { shown, near, again = [] } = await body(request);
    const exists = (n) => Number.isInteger(n) && n >= 0 && n < images.length;
    const page = pages.get(searchParams.get("page")); // Looked up last: it may have closed while the body arrived.
    page?.look({ shown: shown.filter(exists), near: near.filter(exists), again: again.filter(exists) });
    response.writeHead(page ? 204 : 404).end();
  } else if (files.has(pathname)) {
    await sendFile(response, files.get(pathname), "max-age=60, immutable");
  } else {
    response.writeHead(404).end();
  }
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    if (response.headersSent) response.destroy();
    else response.writeHead(error.code === "ENOENT" ? 404 : 400).end(String(error));
  });
});

/** Sends the counters to the panels of all pages, four times a second. */
async function tellFigures() {
  for (;;) {
    await pause(250, undefined, { ref: false });
    if (pages.size === 0) continue;
    try {
      const { queue, cache, requests, transfers, memory } = await worker.stats();
      for (const page of pages.values()) page.tellIfItReads({ stats: { queue, cache, requests, transfers, memory } });
    } catch {
      // The worker has died. The next call starts another.
    }
  }
}
tellFigures();

server.once("error", (error) => {
  const reason = error.code === "EADDRINUSE" ? `port ${port} is in use` : error.message;
  end(69, `${reason}; choose another with --port`);
});
server.listen(port, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await worker.close();
    process.exit(0);
  });
}

#!/usr/bin/env node
/**
 * A gallery of thousands of images that scrolls. The browser says what it shows; the worker loads that first, what is near next,
 * and drops what has left.
 *
 *     server.mjs [--list FILE] [--pictures 2000] [--port 8080] [-- WORKER OPTIONS]
 *
 * Without a list, it paints its own pictures and serves them, slowly, from a second port.
 */

import { randomUUID } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { parseArgs } from "node:util";

import { ImageWorker } from "../node/imageworker.mjs";
import { servePictures } from "./pictures.mjs";

const { values: given, positionals: workerOptions } = parseArgs({
  options: {
    list: { type: "string" },
    pictures: { type: "string", default: "2000" },
    port: { type: "string", default: "8080" },
    side: { type: "string", default: "240" },
  },
  allowPositionals: true,
});

const urls = given.list
  ? readFileSync(given.list, "utf8").split("\n").filter(Boolean)
  : await servePictures(Number(given.pictures));
const worker = new ImageWorker({ options: workerOptions });
const { formats } = await worker.call("initialize");
const side = Number(given.side);
/** Without a decoder, the images go to the browser as they are. */
const look = formats.encode.includes("jpeg")
  ? { transform: { width: side, height: side, fit: "cover", format: "jpeg" } }
  : {};
const extras = formats.encode.includes("jpeg") ? { placeholder: true, events: ["preview"] } : {};

/** The mean colours of images that have been loaded, by their numbers: what a page shows before it has anything else. */
const colours = new Map();

/** Files that pages may fetch, by the names they were given. A path stays for a minute; a page fetches it at once. */
const files = new Map();
function publish(path) {
  const name = `/file/${randomUUID()}${extname(path)}`;
  files.set(name, path);
  setTimeout(() => files.delete(name), 60_000).unref();
  return name;
}

/** What one page shows, and what it has under way. */
class Page {
  #stream;
  #wanted = new Map();

  constructor(stream) {
    this.#stream = stream;
  }

  tell(event) {
    this.#stream.write(`data: ${JSON.stringify(event)}\n\n`);
  }

  /** `shown` and `near` are the numbers of the images that the page has on its screen and close to it, in its order. */
  look({ shown, near }) {
    const keep = new Map([...near.map((n) => [n, "near"]), ...shown.map((n) => [n, "shown"])]);
    for (const [n, want] of this.#wanted) {
      if (!keep.has(n)) {
        this.#wanted.delete(n);
        want.left.abort();
        if (!want.isDone) this.tell({ n, cancelled: true });
      }
    }
    for (const [n, how] of keep) {
      const want = this.#wanted.get(n);
      if (how === "shown" && want?.how !== "shown") this.#show(n, want);
      if (how === "near" && !want) this.#prepare(n);
    }
  }

  /** The load for the screen joins one that prepares it, and brings its own priority along. */
  async #show(n, prepared) {
    const want = { how: "shown", left: prepared?.left ?? new AbortController(), isDone: false };
    this.#wanted.set(n, want);
    try {
      const image = await worker.load(urls[n], {
        ...look,
        ...extras,
        priority: "high",
        signal: want.left.signal,
        onEvent: ({ name, params }) => name === "preview" && this.tell({ n, preview: publish(params.path) }),
      });
      if (image.placeholder) colours.set(n, image.placeholder.color);
      this.tell({ n, image: publish(image.path), cache: image.cache });
    } catch (error) {
      if (!want.left.signal.aborted) this.tell({ n, error: error.message });
    }
    want.isDone = true;
  }

  async #prepare(n) {
    const want = { how: "near", left: new AbortController(), isDone: false };
    this.#wanted.set(n, want);
    try {
      await worker.load(urls[n], { ...look, priority: "low", deliver: "none", signal: want.left.signal });
    } catch {
      // Whoever comes to show it hears of it.
    }
    want.isDone = true;
  }

  leave() {
    for (const { left } of this.#wanted.values()) left.abort();
    this.#wanted.clear();
  }
}

const pages = new Map();

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".jpg": "image/jpeg", ".svg": "image/svg+xml" };

function sendFile(response, path, cacheControl) {
  const stream = createReadStream(path);
  stream.once("open", () => {
    const extension = extname(path);
    response.writeHead(200, {
      "Content-Type": types[extension] ?? `image/${extension.slice(1)}`,
      "Cache-Control": cacheControl,
      // What strangers made must not become a page of ours.
      "Content-Security-Policy": extension === ".html" ? "default-src 'self' 'unsafe-inline'" : "sandbox",
      "X-Content-Type-Options": "nosniff",
    });
    stream.pipe(response);
  });
  stream.once("error", () => response.writeHead(404).end());
}

async function body(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return JSON.parse(text);
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const page = pages.get(searchParams.get("page"));
  if (pathname === "/") {
    sendFile(response, new URL("page.html", import.meta.url).pathname, "no-store");
  } else if (pathname === "/list") {
    response.end(JSON.stringify({ count: urls.length, side, colours: Object.fromEntries(colours) }));
  } else if (pathname === "/events") {
    const id = randomUUID();
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const opened = new Page(response);
    pages.set(id, opened);
    opened.tell({ page: id });
    response.once("close", () => {
      pages.delete(id);
      opened.leave();
    });
  } else if (pathname === "/look" && page && request.method === "POST") {
    try {
      const { shown, near } = await body(request);
      const exists = (n) => Number.isInteger(n) && n >= 0 && n < urls.length;
      page.look({ shown: shown.filter(exists), near: near.filter(exists) });
      response.writeHead(204).end();
    } catch (error) {
      response.writeHead(400).end(String(error));
    }
  } else if (files.has(pathname)) {
    sendFile(response, files.get(pathname), "max-age=60, immutable");
  } else {
    response.writeHead(404).end();
  }
});

/** The panel of every page. */
setInterval(async () => {
  if (pages.size === 0) return;
  const { queue, cache, requests, transfers, memory } = await worker.call("stats");
  for (const page of pages.values()) page.tell({ stats: { queue, cache, requests, transfers, memory } });
}, 250).unref();

server.listen(Number(given.port), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await worker.close();
    process.exit(0);
  });
}

/**
 * ImageWorker for Node: one file, no dependencies, Node 18 or newer.
 *
 *     const worker = new ImageWorker();
 *     const image = await worker.load("https://example.com/cat.jpg");
 *     console.log(image.path, image.width, image.height);
 *     await worker.close();
 *
 * The rules this client keeps, so that a program built on it need not know them:
 *
 * - Reading never waits for writing: requests go to the pipe's buffer.
 * - A line may be of any length; the worker's log on standard error is always read.
 * - Each call ends once: in a result, in an ImageWorkerError, or in the reason of its AbortSignal, which cancels the load.
 * - When the worker dies, every pending call fails with WorkerExited.
 * - `close` ends the worker: input is closed, then a wait, then SIGTERM, then SIGKILL.
 *
 * The protocol is in protocol/README.md.
 */

import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { readFile } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * @typedef {"lowest" | "low" | "normal" | "high" | "highest"} Priority
 * @typedef {"default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached" | "refresh"} CacheMode
 *
 * @typedef {object} Image  A loaded image, as the worker sent it.
 * @property {string} [url]
 * @property {string} key
 * @property {"miss" | "memory" | "disk" | "revalidated" | "stale"} cache
 * @property {number} bytes
 * @property {string} mediaType
 * @property {string} [format]
 * @property {number} [width]
 * @property {number} [height]
 * @property {string} [path]  A file whose bytes never change and that stays for at least 60 seconds.
 * @property {string} [data]  Base64.
 * @property {Pixels} [pixels]
 * @property {{bytes: number, format: string, width?: number, height?: number}} [source]  What a transform was made of.
 * @property {{thumbhash: string, color: string}} [placeholder]
 * @property {string} [finalURL]
 * @property {number} [frames]
 * @property {number} [orientation]
 * @property {{status: number, headers: Record<string, string | string[]>}} [response]
 * @property {number} [attempts]
 * @property {{queuedMs?: number, firstByteMs?: number, totalMs: number}} [timing]
 *
 * @typedef {object} Pixels  A decoded image in shared memory: rows of 8-bit sRGB, grey, R G B or R G B A.
 * @property {string} path
 * @property {number} offset
 * @property {number} width
 * @property {number} height
 * @property {number} stride
 * @property {1 | 3 | 4} channels
 * @property {number} bytes
 *
 * @typedef {object} Transform  protocol/README.md says what each does.
 * @property {number} [width]
 * @property {number} [height]
 * @property {"inside" | "contain" | "cover" | "fill"} [fit]
 * @property {boolean} [enlarge]
 * @property {"auto" | "none"} [rotate]
 * @property {{x: number, y: number, width: number, height: number}} [crop]
 * @property {"keep" | "jpeg" | "png" | "webp" | "avif"} [format]
 * @property {number} [quality]
 * @property {"first" | "all"} [frames]
 * @property {string} [background]
 * @property {number} [blur]
 * @property {boolean} [grayscale]
 * @property {number} [cornerRadius]
 *
 * @typedef {object} WorkerEvent
 * @property {string} name  `started`, `progress`, `retrying`, `cached`, `preview`, `completed`, `failed`
 * @property {Record<string, any>} params
 *
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]  Aborting it cancels the request.
 * @property {(event: WorkerEvent) => void} [onEvent]
 *
 * @typedef {object} LoadParams
 * @property {string} [key]
 * @property {Priority} [priority]
 * @property {string} [group]
 * @property {string} [slot]
 * @property {Record<string, string>} [headers]
 * @property {CacheMode} [cache]
 * @property {"all" | "memory" | "disk" | "none"} [store]
 * @property {"path" | "data" | "none" | "pixels"} [deliver]
 * @property {string} [saveTo]
 * @property {"none" | "header" | "decode"} [validate]
 * @property {("started" | "progress" | "retrying" | "cached" | "preview")[]} [events]
 * @property {number} [timeoutMs]
 * @property {number} [deadlineMs]
 * @property {number} [retries]
 * @property {number} [maxBytes]
 * @property {boolean} [retryFailed]
 * @property {boolean} [response]
 * @property {string} [digest]
 * @property {Transform} [transform]
 * @property {boolean} [placeholder]
 */

/** An error that the worker answered. Switch on `kind`; protocol/README.md lists them. */
export class ImageWorkerError extends Error {
  /** @param {number} code @param {string} message @param {Record<string, any>} data */
  constructor(code, message, data) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    /** @type {string} */
    this.kind = data.kind ?? "internal";
    /** @type {boolean} */
    this.retryable = data.retryable ?? false;
    this.data = data;
  }
}

/** The worker ended before it answered. `code` is 0; `data` has its exit status or signal and the end of its log. */
export class WorkerExited extends ImageWorkerError {
  /** @param {number | string | null} status @param {string[]} log */
  constructor(status, log) {
    const message = `the worker ended (status ${status})${log.length > 0 ? `: ${log[log.length - 1]}` : ""}`;
    super(0, message, { kind: "workerExited", retryable: true, exitStatus: status, log: [...log] });
  }
}

/**
 * The worker to start: the argument, else $IMAGEWORKER, else this package's release build, else $PATH.
 * @param {string} [binary]
 * @returns {string}
 */
export function findWorker(binary) {
  const chosen = binary || process.env.IMAGEWORKER;
  if (chosen) return chosen;
  const built = fileURLToPath(new URL("../../.build/release/imageworker", import.meta.url));
  const directories = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  for (const candidate of [built, ...directories.map((directory) => join(directory, "imageworker"))]) {
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Look further.
    }
  }
  throw new Error("no imageworker: build it (swift build -c release), or set IMAGEWORKER to its path");
}

/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
process.once("exit", () => {
  for (const child of children) child.kill();
});

/**
 * @typedef {object} Call
 * @property {(result: any) => void} resolve
 * @property {(error: unknown) => void} reject
 * @property {((event: WorkerEvent) => void) | undefined} onEvent
 */

/** One worker process. It starts at once; a program that wants to end closes it. */
export class ImageWorker {
  /** @type {Map<number, Call>} */ #calls = new Map();
  /** @type {string[]} */ #log = [];
  /** @type {WorkerExited | undefined} */ #exited;
  #lastID = 0;
  #child;
  #onEvent;
  #closed;

  /**
   * @param {object} settings
   * @param {string[]} [settings.options]  The worker's own, such as ["--max-per-host", "8"].
   * @param {string} [settings.binary]
   * @param {(event: WorkerEvent) => void} [settings.onEvent]  Gets the events that belong to no pending call.
   * @param {(line: string) => void} [settings.onLog]  Gets the lines of the worker's log.
   */
  constructor({ options = [], binary, onEvent, onLog } = {}) {
    this.#onEvent = onEvent;
    const child = spawn(findWorker(binary), options, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    children.add(child);
    child.stdin.on("error", () => {}); // A worker that is gone is told of by "close".
    eachLine(child.stdout, (line) => this.#receive(line));
    eachLine(child.stderr, (line) => {
      this.#log.push(line);
      if (this.#log.length > 20) this.#log.shift();
      onLog?.(line);
    });
    child.on("error", (error) => this.#log.push(error.message));
    this.#closed = /** @type {Promise<void>} */ (
      new Promise((done) => {
        child.on("close", (code, signal) => {
          children.delete(child);
          this.#exited = new WorkerExited(code ?? signal, this.#log);
          for (const call of this.#calls.values()) call.reject(this.#exited);
          this.#calls.clear();
          done();
        });
      })
    );
  }

  /** @returns {number | undefined} */
  get pid() {
    return this.#child.pid;
  }

  /**
   * Loads one image. With `onEvent`, `events` defaults to all but `preview`.
   * @param {string} url
   * @param {LoadParams & CallOptions} options
   * @returns {Promise<Image>}
   */
  async load(url, { signal, onEvent, saveTo, ...params } = {}) {
    if (onEvent && !params.events) params.events = ["started", "progress", "retrying", "cached"];
    const request = { url, ...params, ...(saveTo === undefined ? {} : { saveTo: resolve(saveTo) }) };
    return this.call("load", request, { signal, onEvent });
  }

  /**
   * The pixels of a load with `deliver: "pixels"`, as a Buffer; then the worker has its memory back.
   * @param {Pixels} pixels
   * @returns {Promise<Buffer>}
   */
  async takePixels(pixels) {
    try {
      return (await readFile(pixels.path)).subarray(pixels.offset, pixels.offset + pixels.bytes);
    } finally {
      await this.call("release", { path: pixels.path });
    }
  }

  /**
   * Loads one image and yields its events; the last is `completed` with the result. Leaving the loop early cancels the load.
   * @param {string} url
   * @param {LoadParams & {signal?: AbortSignal}} options
   * @returns {AsyncGenerator<WorkerEvent, void, undefined>}
   */
  async *loadEvents(url, { signal, ...params } = {}) {
    const left = new AbortController();
    const abort = () => left.abort(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    /** @type {WorkerEvent[]} */
    let waiting = [];
    let wake = () => {};
    let ended = false;
    const onEvent = (/** @type {WorkerEvent} */ event) => {
      waiting.push(event);
      wake();
    };
    const loading = this.load(url, { ...params, signal: left.signal, onEvent });
    const end = () => {
      ended = true;
      wake();
    };
    loading.then(end, end);
    try {
      while (!ended || waiting.length > 0) {
        const events = waiting;
        waiting = [];
        yield* events;
        if (!ended && waiting.length === 0) await new Promise((done) => (wake = () => done(undefined)));
      }
      yield { name: "completed", params: await loading };
    } finally {
      signal?.removeEventListener("abort", abort);
      left.abort();
    }
  }

  /**
   * Brings images into the cache; `params` are those of the protocol.
   * @param {(string | {url: string, key?: string, headers?: Record<string, string>})[]} urls
   * @param {{priority?: Priority, group?: string, headers?: Record<string, string>, events?: string[]} & CallOptions} options
   * @returns {Promise<{total: number, downloaded: number, cached: number, failed: number, cancelled: number, bytes: number,
   *   errors: {url: string, kind: string}[]}>}
   */
  async prefetch(urls, { signal, onEvent, ...params } = {}) {
    if (onEvent && !params.events) params.events = ["progress"];
    return this.call("prefetch", { urls, ...params }, { signal, onEvent });
  }

  /**
   * Any method of the protocol, by its name; resolves to its result as it came.
   * @param {string} method
   * @param {Record<string, any>} [params]
   * @param {CallOptions} options
   * @returns {Promise<any>}
   */
  call(method, params = {}, { signal, onEvent } = {}) {
    if (this.#exited) return Promise.reject(this.#exited);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = ++this.#lastID;
    return new Promise((resolveCall, rejectCall) => {
      const abort = () => {
        this.#calls.delete(id);
        this.notify("cancel", { id });
        rejectCall(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#calls.set(id, {
        resolve: (result) => {
          signal?.removeEventListener("abort", abort);
          resolveCall(result);
        },
        reject: (error) => {
          signal?.removeEventListener("abort", abort);
          rejectCall(error);
        },
        onEvent,
      });
      this.#send({ id, method, params });
    });
  }

  /**
   * Sends a request that is carried out but not answered.
   * @param {string} method
   * @param {Record<string, any>} [params]
   */
  notify(method, params = {}) {
    this.#send({ method, params });
  }

  /**
   * Ends the worker. Calls still pending are cancelled; notifications sent before are carried out.
   * Each step (close input, SIGTERM, SIGKILL) gets `graceMs`.
   * @param {number} [graceMs]
   * @returns {Promise<void>}
   */
  async close(graceMs = 5000) {
    for (const id of this.#calls.keys()) this.notify("cancel", { id });
    this.#child.stdin.end();
    /** @type {NodeJS.Signals[]} */
    const signals = ["SIGTERM", "SIGKILL"];
    const escalate = () => {
      const signal = signals.shift();
      if (signal) this.#child.kill(signal);
      timer = setTimeout(escalate, graceMs);
    };
    let timer = setTimeout(escalate, graceMs);
    await this.#closed;
    clearTimeout(timer);
  }

  /** `await using worker = new ImageWorker()`, where the language has it. */
  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.close();
  }

  /** @param {Record<string, any>} request */
  #send(request) {
    if (!this.#child.stdin.writable) return;
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`);
  }

  /** @param {string} line */
  #receive(line) {
    const message = JSON.parse(line);
    if (message.method !== undefined) {
      const event = { name: message.method, params: message.params ?? {} };
      const call = this.#calls.get(event.params.id);
      try {
        (call ? call.onEvent : this.#onEvent)?.(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error; // Where an uncaught error belongs, and not between two lines.
        });
      }
      return;
    }
    const call = this.#calls.get(message.id);
    if (!call) return; // Aborted meanwhile.
    this.#calls.delete(message.id);
    if (message.error) {
      const { code, message: text, data = {} } = message.error;
      call.reject(new ImageWorkerError(code, text, data));
    } else {
      call.resolve(message.result);
    }
  }
}

/**
 * Lines of any length, without joining the start of a long one again and again.
 * @param {import("node:stream").Readable} stream
 * @param {(line: string) => void} receive
 */
function eachLine(stream, receive) {
  /** @type {string[]} */
  let start = [];
  stream.setEncoding("utf8");
  stream.on("data", (/** @type {string} */ chunk) => {
    const lines = chunk.split("\n");
    const rest = /** @type {string} */ (lines.pop());
    if (lines.length > 0) {
      lines[0] = start.join("") + lines[0];
      start = [];
    }
    if (rest !== "") start.push(rest);
    for (const line of lines) if (line !== "") receive(line);
  });
}

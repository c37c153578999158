/**
 * ImageWorker for Node: one file, no dependencies, Node 18 or newer. Types are in imageworker.d.ts.
 *
 *     const worker = new ImageWorker();
 *     const image = await worker.load("https://example.com/cat.jpg");
 *     console.log(image.path, image.width, image.height);
 *     await worker.close();
 *
 * The rules this client keeps, so that a program built on it need not know them:
 *
 * - Reading never waits for writing: requests go to the pipe's buffer, all of one turn of the event loop in one write.
 * - A line may be of any length; the worker's log on standard error is always read.
 * - Each call ends once: in a result, in an ImageWorkerError, or in the reason of its AbortSignal, which cancels the load.
 * - When the worker dies, every pending call fails with WorkerExited, which names the loads lost with it. The next call starts
 *   another worker, after a pause that doubles with each death in a row; after `maxRestarts` of them it stays dead.
 * - A worker without pending calls does not keep the program alive, and ends with it.
 * - `close` ends the worker: input is closed, then a wait, then SIGTERM, then SIGKILL.
 *
 * The protocol is in protocol/README.md.
 */

import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { open } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

// Errors

/** An error that the worker answered. Its class is the family; switch on `kind` for more. protocol/README.md lists all. */
export class ImageWorkerError extends Error {
  constructor(code, message, data) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    this.kind = data.kind ?? "internal";
    this.retryable = data.retryable ?? false;
    this.url = data.url;
    this.data = data;
  }

  /** The error that an answer carries, in the class of its family. */
  static of({ code, message, data = {} }) {
    const family = code === -32800 ? CancelledByRequest : families[Math.floor(code / 1000)] ?? RequestError;
    return new family(code, message, data);
  }
}

/** The request was refused as it stood: -32700 to -32600. */
export class RequestError extends ImageWorkerError {}

/** The load was cancelled by another request: `cancel`, a new URL in its slot, or the end of the worker. */
export class CancelledByRequest extends ImageWorkerError {}

/** The transfer failed: 2001 and on. */
export class NetworkError extends ImageWorkerError {}

/** The cache has nothing, or the disk failed: 3001 and on. */
export class CacheError extends ImageWorkerError {}

/** What came is no image, or none that can be decoded: 4001 and on. */
export class DecodingError extends ImageWorkerError {}

/** The worker takes no more requests, or none now: 5001 and on. */
export class LifecycleError extends ImageWorkerError {}

const families = { 2: NetworkError, 3: CacheError, 4: DecodingError, 5: LifecycleError };

/**
 * The worker ended before it answered. `lost` are the URLs of all loads that ended with it. `code` is 0; `data` has its exit
 * status or signal and the end of its log.
 */
export class WorkerExited extends LifecycleError {
  constructor(status, log, url, lost = []) {
    const message = `the worker ended (status ${status})${log.length > 0 ? `: ${log.at(-1)}` : ""}`;
    super(0, message, { kind: "workerExited", retryable: true, exitStatus: status, log: [...log], url });
    this.lost = lost;
  }
}

// One worker process

/** The worker to start: the argument, else $IMAGEWORKER, else this package's release build, else $PATH. */
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

const children = new Set();
process.once("exit", () => {
  for (const child of children) child.kill();
});

/** One worker process from its start to its end: its pipes, and the calls that wait for it. */
class Life {
  #calls = new Map();
  #log = [];
  #lastID = 0;
  #outgoing = [];
  #child;
  #listener;
  /** The WorkerExited without a URL, once the process is gone and all that it wrote has been read. */
  end;
  ended;

  /** `listener` has answered(), onEvent?(event) and onLog?(line). */
  constructor(binary, options, listener) {
    this.#listener = listener;
    const child = spawn(binary, options, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    children.add(child);
    child.stdin.on("error", () => {}); // A worker that is gone is told of by "close".
    eachLine(child.stdout, (line) => this.#receive(line));
    eachLine(child.stderr, (line) => {
      this.#log.push(line);
      if (this.#log.length > 20) this.#log.shift();
      listener.onLog?.(line);
    });
    child.on("error", (error) => this.#log.push(error.message));
    this.ended = new Promise((done) => {
      child.on("close", (code, signal) => {
        children.delete(child);
        const calls = [...this.#calls.values()];
        this.#calls.clear();
        const lost = calls.map((call) => call.url).filter((url) => url !== undefined);
        this.end = new WorkerExited(code ?? signal, this.#log, undefined, lost);
        for (const call of calls) call.reject(new WorkerExited(code ?? signal, this.#log, call.url, lost));
        done(this.end);
      });
    });
    this.#holdProgram(false);
  }

  get pid() {
    return this.#child.pid;
  }

  call(method, params, { signal, onEvent }) {
    const id = ++this.#lastID;
    return new Promise((resolveCall, rejectCall) => {
      const abort = () => {
        this.#forget(id);
        this.send({ method: "cancel", params: { id } });
        rejectCall(signal.reason);
      };
      const settled = (settle) => (value) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      signal?.addEventListener("abort", abort, { once: true });
      if (this.#calls.size === 0) this.#holdProgram(true);
      this.#calls.set(id, { resolve: settled(resolveCall), reject: settled(rejectCall), onEvent, url: params.url });
      this.send({ id, method, params });
    });
  }

  send(request) {
    if (this.#outgoing.length === 0) setImmediate(() => this.#flush());
    this.#outgoing.push(JSON.stringify(request));
  }

  #flush() {
    const lines = this.#outgoing;
    this.#outgoing = [];
    if (lines.length > 0 && this.#child.stdin.writable) this.#child.stdin.write(`${lines.join("\n")}\n`);
  }

  /** Ends the process in steps of `graceMs`: cancel and close input, SIGTERM, SIGKILL. */
  async finish(graceMs) {
    for (const id of this.#calls.keys()) this.send({ method: "cancel", params: { id } });
    this.#flush();
    this.#child.stdin.end();
    this.#holdProgram(true);
    const signals = ["SIGTERM", "SIGKILL"];
    const timer = setInterval(() => this.#child.kill(signals.shift()), graceMs);
    await this.ended;
    clearInterval(timer);
  }

  #forget(id) {
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#holdProgram(false);
  }

  /** Whether the program must not end before the worker has answered. */
  #holdProgram(holds) {
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      if (holds) handle.ref?.();
      else handle.unref?.();
    }
  }

  #receive(line) {
    const message = JSON.parse(line);
    if (message.method !== undefined) {
      const event = { name: message.method, params: message.params ?? {} };
      const call = this.#calls.get(event.params.id);
      try {
        (call ? call.onEvent : this.#listener.onEvent)?.(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error; // Where an uncaught error belongs, and not between two lines.
        });
      }
      return;
    }
    this.#listener.answered();
    const call = this.#calls.get(message.id);
    if (!call) return; // Aborted meanwhile.
    this.#forget(message.id);
    if (message.error) call.reject(ImageWorkerError.of(message.error));
    else call.resolve(message.result);
  }
}

// The worker

/** Exit statuses that another start will not change: a bad option, a cache directory that cannot be used. */
const hopeless = new Set([64, 73]);

export class ImageWorker {
  #binary;
  #options;
  #settings;
  #life;
  #starting;
  #deaths = 0;
  #closing = new AbortController();

  constructor({ options = [], binary, onEvent, onLog, onExit, maxRestarts = 5, longestPauseMs = 10_000 } = {}) {
    this.#binary = findWorker(binary);
    this.#options = options;
    this.#settings = { onEvent, onLog, onExit, maxRestarts, longestPauseMs };
    this.#start();
  }

  get pid() {
    return this.#life.pid;
  }

  async load(url, { signal, onEvent, saveTo, ...params } = {}) {
    if (onEvent && !params.events) params.events = ["started", "progress", "retrying", "cached"];
    const request = { url, ...params };
    if (saveTo !== undefined) request.saveTo = resolve(saveTo);
    return this.call("load", request, { signal, onEvent });
  }

  async *loadEvents(url, { signal, ...params } = {}) {
    const left = new AbortController();
    const abort = () => left.abort(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    let waiting = [];
    let wake = () => {};
    let ended = false;
    const onEvent = (event) => {
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
        if (!ended && waiting.length === 0) await new Promise((done) => (wake = done));
      }
      yield { name: "completed", params: await loading };
    } finally {
      signal?.removeEventListener("abort", abort);
      left.abort();
    }
  }

  async prefetch(urls, { signal, onEvent, ...params } = {}) {
    if (onEvent && !params.events) params.events = ["progress"];
    return this.call("prefetch", { urls, ...params }, { signal, onEvent });
  }

  /** The pixels of a load with `deliver: "pixels"`, copied into a Buffer and released: Node has no way to map memory. */
  async takePixels({ pixels }) {
    const file = await open(pixels.path);
    try {
      const { buffer } = await file.read(Buffer.allocUnsafe(pixels.bytes), 0, pixels.bytes, pixels.offset);
      return buffer;
    } finally {
      await file.close();
      this.notify("release", { path: pixels.path });
    }
  }

  async call(method, params = {}, options = {}) {
    options.signal?.throwIfAborted();
    const life = this.#life.end || this.#starting ? await this.#running(options.signal) : this.#life;
    return life.call(method, params, options);
  }

  notify(method, params = {}) {
    if (!this.#life.end) this.#life.send({ method, params });
  }

  async close(graceMs = 5000) {
    this.#closing.abort();
    if (!this.#life.end) await this.#life.finish(graceMs);
  }

  // Life and death

  #start() {
    const { onEvent, onLog } = this.#settings;
    const life = new Life(this.#binary, this.#options, { onEvent, onLog, answered: () => (this.#deaths = 0) });
    this.#life = life;
    life.ended.then((end) => {
      if (this.#closing.signal.aborted) return;
      this.#deaths += 1;
      this.#settings.onExit?.(end);
    });
    return life;
  }

  /** The running worker, once there is one. All callers share one attempt, and none of them can cancel it. */
  async #running(signal) {
    this.#starting ??= this.#pauseAndStart(this.#life.end).finally(() => (this.#starting = undefined));
    const aborted = new Promise((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return Promise.race([this.#starting, aborted]);
  }

  async #pauseAndStart(end) {
    const { maxRestarts, longestPauseMs } = this.#settings;
    const { exitStatus, log } = end.data;
    if (this.#closing.signal.aborted || this.#deaths > maxRestarts || hopeless.has(exitStatus)) {
      throw new WorkerExited(exitStatus, log);
    }
    const milliseconds = Math.min(100 * 2 ** (this.#deaths - 1), longestPauseMs);
    await pause(milliseconds, undefined, { signal: this.#closing.signal }).catch(() => {});
    if (this.#closing.signal.aborted) throw new WorkerExited(exitStatus, log);
    return this.#start();
  }
}

// Where the language has it: `await using worker = new ImageWorker()`.
if (Symbol.asyncDispose) {
  Object.defineProperty(ImageWorker.prototype, Symbol.asyncDispose, {
    value() {
      return this.close();
    },
  });
}

/** Lines of any length, without joining the start of a long one again and again. */
function eachLine(stream, receive) {
  let start = [];
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    const lines = chunk.split("\n");
    const rest = lines.pop();
    if (lines.length > 0) {
      lines[0] = start.join("") + lines[0];
      start = [];
    }
    if (rest !== "") start.push(rest);
    for (const line of lines) if (line !== "") receive(line);
  });
}

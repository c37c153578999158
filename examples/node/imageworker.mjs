/**
 * ImageWorker for Node: one file, no dependencies, Node 18 or newer. Types are in imageworker.d.ts.
 *
 *     const worker = new ImageWorker();
 *     const image = await worker.load("https://example.com/cat.jpg");
 *     console.log(image.path, image.width, image.height);
 *     await worker.close();
 *
 * Guarantees:
 *
 * - Reading never waits for writing: requests go to the pipe's buffer, all of one turn of the event loop at once.
 * - A line may be of any length; the worker's log on standard error is always read.
 * - Each call ends once: with a result, an ImageWorkerError, or the reason of its AbortSignal, which cancels the load.
 * - When the worker dies, every pending call fails with WorkerExited, which names the loads lost with it. The next call starts
 *   another worker, after a pause that doubles with each death in a row. After `maxRestarts` deaths calls fail at once;
 *   once `longestPauseMs` have passed since the last death, one call tries again.
 * - A worker without pending calls does not keep the program alive, and ends with it. Ctrl-C reaches only the host.
 * - `close` ends the worker: input is closed, then a wait, then SIGTERM, then SIGKILL.
 *
 * The protocol is in protocol/README.md.
 */

import { constants as limits } from "node:buffer";
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
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

  /** The error of an answer, in the class of its family; `internal` if the answer has no readable error. */
  static of({ code = -32603, message = "the worker's answer cannot be read", data }) {
    const family = code === -32800 ? CancelledByRequest : families[Math.floor(code / 1000)] ?? RequestError;
    return new family(code, message, data ?? {});
  }
}

/** The request is invalid: -32700 to -32600. */
export class RequestError extends ImageWorkerError {}

/** The load was cancelled by another request: `cancel`, a new URL in its slot, or the end of the worker. */
export class CancelledByRequest extends ImageWorkerError {}

/** The transfer failed: 2001 and on. */
export class NetworkError extends ImageWorkerError {}

/** The cache has nothing, or the disk failed: 3001 and on. */
export class CacheError extends ImageWorkerError {}

/** The content is not an image, or cannot be decoded: 4001 and on. */
export class DecodingError extends ImageWorkerError {}

/** The worker takes no more requests, or none now: 5001 and on. */
export class LifecycleError extends ImageWorkerError {}

const families = { 2: NetworkError, 3: CacheError, 4: DecodingError, 5: LifecycleError };

/**
 * The worker ended before it answered. `lost` has the URLs of all loads and prefetches that ended with it. `code` is 0; `data`
 * has its exit status or signal, null if it did not start, and the end of its log. It is retryable unless no other worker will
 * be started.
 */
export class WorkerExited extends LifecycleError {
  constructor({ exitStatus, log, retryable, url }, lost = []) {
    const what = exitStatus === null ? "the worker did not start" : `the worker ended (status ${exitStatus})`;
    const message = log.length > 0 ? `${what}: ${log.at(-1)}` : what;
    super(0, message, { kind: "workerExited", retryable, exitStatus, log: [...log], url });
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
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // Look further.
    }
  }
  throw new Error("imageworker was not found: build it (swift build -c release), or set IMAGEWORKER to its path");
}

/** The system's errors for a binary that can never be started. */
const refusals = { ENOENT: "no such file", EACCES: "permission denied" };

const children = new Set();
process.once("exit", () => {
  for (const child of children) child.kill();
});

/** One worker process from its start to its end: its pipes, and the calls that wait for it. */
class Life {
  #calls = new Map();
  #log = [];
  #lastID = 0;
  /** The last call about which the worker was asked whether it knows it. */
  #askedID = 0;
  #outgoing = [];
  #child;
  #listener;
  /** The WorkerExited without a URL, once the process has ended and all its output has been read. */
  end;
  ended;

  /** Whether the binary does not exist or must not be run. */
  #isMissing = false;

  /**
   * `listener` has answered(), died(exitStatus, isMissing), which returns whether a restart is possible, onEvent?(event),
   * onLog?(line).
   */
  constructor(binary, options, listener) {
    this.#listener = listener;
    // In a session of its own, Ctrl-C reaches only the host, which may want to finish its loads.
    let child;
    try {
      child = spawn(binary, options, { stdio: ["pipe", "pipe", "pipe"], detached: true });
    } catch (error) {
      if (!error.syscall) throw error; // A mistake of the program.
      // Some failures are not events, such as that of a binary that is being written.
      this.#child = {};
      this.#note(error.message);
      this.ended = new Promise((done) => setImmediate(() => done(this.#finished(null))));
      return;
    }
    this.#child = child;
    children.add(child);
    child.on("error", (error) => {
      this.#isMissing = child.pid === undefined && error.code in refusals;
      this.#note(this.#isMissing ? `${binary}: ${refusals[error.code]}` : error.message);
    });
    this.ended = new Promise((done) => child.on("close", (code, signal) => done(this.#finished(code ?? signal))));
    // Another process may hold the pipes of the ended one; "close" is emitted only when they are closed.
    child.on("exit", () => setTimeout(() => child.stdio.forEach((pipe) => pipe?.destroy()), 1000).unref());
    if (!child.stdin) return; // No descriptor was free. "error" and "close" are emitted nevertheless.
    // A worker that does not read cannot answer. For an ended process this does nothing.
    child.stdin.on("error", () => child.kill("SIGKILL"));
    child.stdout.on("end", () => child.kill("SIGKILL"));
    eachLine(child.stdout, (line) => this.#receive(line));
    eachLine(child.stderr, (line) => this.#note(line));
    this.#holdProgram(false);
  }

  get pid() {
    return this.#child.pid;
  }

  call(method, params, { signal, onEvent }) {
    const id = ++this.#lastID;
    const line = encode({ id, method, params });
    const url = params?.url && String(params.url); // Throws if it cannot be converted to a string.
    return new Promise((resolveCall, rejectCall) => {
      const ignoreSignal = whenAborted(signal, (reason) => {
        this.#take(id);
        this.tell("cancel", { id });
        rejectCall(reason);
      });
      if (this.#calls.size === 0) this.#holdProgram(true);
      const call = { url, wanted: wanted(method, params), onEvent, ignoreSignal, resolve: resolveCall, reject: rejectCall };
      this.#calls.set(id, call);
      this.#write(line);
    });
  }

  /** Sends a request whose answer is ignored. It has an id, so that its outcome is not an event for the host. */
  tell(method, params) {
    this.send({ id: ++this.#lastID, method, params });
  }

  send(request) {
    this.#write(encode(request));
  }

  #write(line) {
    if (this.#outgoing.length === 0) setImmediate(() => this.#flush());
    this.#outgoing.push(line);
  }

  /** Writes line by line, and the pipe joins the lines: one string may be too short for all lines of a turn. */
  #flush() {
    const lines = this.#outgoing;
    this.#outgoing = [];
    const { stdin } = this.#child;
    if (!stdin?.writable) return;
    stdin.cork();
    for (const line of lines) stdin.write(line);
    stdin.uncork();
  }

  /** Ends the process in steps of `graceMs`: cancel and close input, SIGTERM, SIGKILL. */
  async finish(graceMs) {
    for (const id of this.#calls.keys()) this.tell("cancel", { id });
    this.#flush();
    this.#child.stdin?.end();
    this.#holdProgram(true);
    const signals = ["SIGTERM", "SIGKILL"];
    const timer = setInterval(() => this.#child.kill(signals.shift()), Math.min(graceMs, longestTimer));
    await this.ended;
    clearInterval(timer);
  }

  #finished(exitStatus) {
    children.delete(this.#child);
    if (this.#child.pid === undefined) exitStatus = null; // Node gives the number of the system's error.
    const facts = { exitStatus, log: this.#log, retryable: this.#listener.died(exitStatus, this.#isMissing) };
    const calls = [...this.#calls.keys()].map((id) => this.#take(id));
    const lost = calls.flatMap((call) => call.wanted);
    this.end = new WorkerExited(facts, lost);
    for (const { url, reject } of calls) reject(new WorkerExited({ ...facts, url }, lost));
    return this.end;
  }

  /** Removes and returns the call with this id. */
  #take(id) {
    const call = this.#calls.get(id);
    if (!call) return undefined;
    call.ignoreSignal();
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#holdProgram(false);
    return call;
  }

  /** Keeps the program alive until the worker has answered, or no longer. */
  #holdProgram(holds) {
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      if (holds) handle?.ref?.();
      else handle?.unref?.();
    }
  }

  #note(line) {
    this.#log.push(line);
    if (this.#log.length > 20) this.#log.shift();
    callHandler(this.#listener.onLog, line);
  }

  #receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      // Logged below, like other lines that are not messages.
    }
    const unread = message ? undefined : /^{"jsonrpc":"2\.0","id":(\d+),/.exec(line)?.[1];
    if (message?.method !== undefined) this.#receiveEvent(message.method, message.params ?? {});
    else if (message?.id !== undefined) this.#receiveAnswer(message);
    else if (unread !== undefined) this.#receiveAnswer({ id: Number(unread), error: { ...unreadable } });
    else this.#note(`the worker wrote a line that is not a message: ${line.slice(0, 40)}`);
  }

  /** An event without an id belongs to a notification and goes to the host. An event of an aborted call is dropped. */
  #receiveEvent(name, params) {
    const receiver = params.id === undefined ? this.#listener : this.#calls.get(params.id);
    callHandler(receiver?.onEvent, { name, params });
  }

  #receiveAnswer({ id, result, error }) {
    this.#listener.answered();
    if (id === null) return this.#askWhose(error);
    const call = this.#take(id);
    if (!call) {
      // The call was aborted meanwhile. Nobody else would release its pixels.
      if (result?.pixels) this.tell("release", { path: result.pixels.path });
    } else if (error || result === undefined) {
      const isUnread = call.refusal && error?.code === -32600;
      call.reject(ImageWorkerError.of(isUnread ? call.refusal : error ?? {}));
    } else {
      call.resolve(result);
    }
  }

  /**
   * A line that the worker cannot read, such as one over `--max-line`, is refused without an id. To find its call, all ids
   * are sent again without a method: the worker refuses those in flight as duplicates, with the id in `data`, and continues
   * them; it answers the one that it does not know.
   */
  #askWhose(refusal) {
    if (refusal?.data?.id !== undefined) return;
    this.#note(`the worker refused a line: ${refusal?.message}`);
    for (const [id, call] of this.#calls) {
      call.refusal = { ...refusal, data: { ...refusal?.data, url: call.url } };
      if (id > this.#askedID) this.send({ id });
    }
    this.#askedID = this.#lastID;
  }
}

/** A request as a line. The worker refuses half a surrogate pair, as of an emoji that was cut in two. */
function encode(request) {
  const line = JSON.stringify(request);
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(line)) {
    const url = request.params?.url;
    const data = { kind: "invalidParams", retryable: false, url: url && String(url) };
    throw new RequestError(-32602, "the parameters must not contain half a surrogate pair", data);
  }
  return `${line}\n`;
}

/** The URLs of a request. */
function wanted(method, params) {
  if (method === "load") return [String(params?.url)];
  if (method === "prefetch") return [params?.urls].flat().map((item) => String(item?.url ?? item));
  return [];
}

/** Calls a handler of the host. Its errors are thrown as uncaught errors, and not while lines are being read. */
function callHandler(handler, value) {
  try {
    handler?.(value);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** The actions for each signal. Thousands of calls may share one, and Node warns of more than ten listeners. */
const aborts = new WeakMap();

/** Calls `act` with the reason when `signal`, if any, is aborted; throws the reason if it is. Returns a function that undoes this. */
function whenAborted(signal, act) {
  signal?.throwIfAborted();
  if (!signal) return () => {};
  if (!aborts.has(signal)) {
    const acts = new Set();
    const listener = () => acts.forEach((act) => act(signal.reason));
    aborts.set(signal, { acts, listener });
    signal.addEventListener("abort", listener, { once: true });
  }
  const { acts, listener } = aborts.get(signal);
  acts.add(act);
  return () => {
    acts.delete(act);
    if (acts.size > 0) return;
    aborts.delete(signal);
    signal.removeEventListener("abort", listener);
  };
}

// The worker

/** Exit statuses after which a restart would fail again: an invalid option, an unusable cookie file or cache directory. */
const hopeless = new Set([64, 66, 73]);

/** Milliseconds. With a longer time, Node's timers fire at once. */
const longestTimer = 2 ** 31 - 1;

/** The abort reason of a load whose events are not wanted any more. */
const unwanted = Symbol("unwanted");

export class ImageWorker {
  #binary;
  #options;
  #settings;
  #life;
  #deaths = 0;
  #diedAt;
  #hasRun = false;
  #waiting = new Set();
  #pause;
  #isClosing = false;

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

  loadEvents(url, { signal, ...params } = {}) {
    const leaving = new AbortController();
    const events = this.#eventsOf(url, params, signal, leaving);
    // A generator ends only after its pending `next` has returned, which may take long.
    for (const way of ["return", "throw"]) {
      const leave = events[way].bind(events);
      events[way] = (value) => {
        leaving.abort(unwanted);
        return leave(value);
      };
    }
    return events;
  }

  async *#eventsOf(url, params, signal, leaving) {
    const ignoreSignal = whenAborted(signal, (reason) => leaving.abort(reason));
    let waiting = [];
    let wake = () => {};
    let ended = false;
    const onEvent = (event) => {
      waiting.push(event);
      wake();
    };
    const loading = this.load(url, { ...params, signal: leaving.signal, onEvent });
    const end = () => {
      ended = true;
      wake();
    };
    loading.then(end, end);
    let isTaken = false;
    try {
      while (!ended || waiting.length > 0) {
        const events = waiting;
        waiting = [];
        yield* events;
        if (!ended && waiting.length === 0) await new Promise((done) => (wake = done));
      }
      const image = await loading;
      isTaken = true;
      yield { name: "completed", params: image };
    } catch (error) {
      if (error !== unwanted) throw error;
    } finally {
      ignoreSignal();
      leaving.abort(unwanted);
      if (!isTaken) loading.then((image) => this.#release(image), () => {});
    }
  }

  async prefetch(urls, { signal, onEvent, ...params } = {}) {
    if (onEvent && !params.events) params.events = ["progress"];
    return this.call("prefetch", { urls, ...params }, { signal, onEvent });
  }

  /** The pixels of a load with `deliver: "pixels"`, copied into a Buffer and released: Node has no way to map memory. */
  async takePixels(image) {
    const { path, offset, bytes } = image.pixels;
    try {
      const file = await open(path);
      try {
        const { buffer } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, offset);
        return buffer;
      } finally {
        await file.close();
      }
    } finally {
      this.#release(image);
    }
  }

  #release({ pixels }) {
    if (pixels) this.#life.tell("release", { path: pixels.path });
  }

  async call(method, params = {}, options = {}) {
    const life = this.#life.end ? await this.#running(options.signal) : this.#life;
    return life.call(method, params, options);
  }

  notify(method, params = {}) {
    if (!this.#life.end) this.#life.send({ method, params });
  }

  async close(graceMs = 5000) {
    this.#isClosing = true;
    this.#endPause();
    if (!this.#life.end) await this.#life.finish(graceMs);
  }

  // Start, end and restart

  #start() {
    const { onEvent, onLog, onExit } = this.#settings;
    const answered = () => (this.#deaths = 0);
    const died = (exitStatus, isMissing) => this.#died(exitStatus, isMissing);
    this.#life = new Life(this.#binary, this.#options, { onEvent, onLog, answered, died });
    this.#life.ended.then((end) => {
      if (!this.#isClosing) onExit?.(end);
    });
  }

  /** Whether another worker can be started. A binary that existed before may be about to be replaced. */
  #died(exitStatus, isMissing) {
    this.#deaths += 1;
    this.#diedAt = performance.now();
    this.#hasRun ||= exitStatus !== null;
    const isHopeless = hopeless.has(exitStatus) || (isMissing && !this.#hasRun);
    return !this.#isClosing && !isHopeless && this.#settings.maxRestarts > 0;
  }

  /** Milliseconds until the next start. Throws if there will be none, or if too many workers died and it is not due yet. */
  #pauseLeft() {
    const { maxRestarts, longestPauseMs } = this.#settings;
    const { data, retryable } = this.#life.end;
    if (this.#isClosing || !retryable) throw new WorkerExited({ ...data, retryable: false });
    const isGivenUp = this.#deaths > maxRestarts;
    const pauseMs = isGivenUp ? longestPauseMs : Math.min(100 * 2 ** (this.#deaths - 1), longestPauseMs);
    const leftMs = Math.max(this.#diedAt + pauseMs - performance.now(), 0);
    if (isGivenUp && leftMs > 0) throw new WorkerExited(data);
    return leftMs;
  }

  /** Waits for a running worker. */
  async #running(signal) {
    while (this.#life.end) {
      const dead = this.#life;
      await this.#wait(this.#pauseLeft(), signal);
      if (this.#life === dead && !this.#isClosing) this.#start();
    }
    return this.#life;
  }

  /** All waiting calls share one pause, and so keep their order. If all are aborted, it does not keep the program alive. */
  #wait(milliseconds, signal) {
    return new Promise((done, fail) => {
      const leave = () => {
        ignoreSignal();
        this.#waiting.delete(proceed);
        if (this.#waiting.size === 0) clearTimeout(this.#pause);
      };
      const proceed = () => {
        leave();
        done();
      };
      const ignoreSignal = whenAborted(signal, (reason) => {
        leave();
        fail(reason);
      });
      if (this.#waiting.size === 0) this.#pause = setTimeout(() => this.#endPause(), milliseconds);
      this.#waiting.add(proceed);
    });
  }

  #endPause() {
    for (const proceed of this.#waiting) proceed();
  }
}

// If the language supports it: `await using worker = new ImageWorker()`.
if (Symbol.asyncDispose) {
  Object.defineProperty(ImageWorker.prototype, Symbol.asyncDispose, {
    value() {
      return this.close();
    },
  });
}

/** The error of a call whose answer is not JSON, or longer than a string can be. */
const unreadable = {
  code: -32603,
  message: "the answer cannot be read: it may be longer than a string can be",
  data: { kind: "internal", retryable: false },
};

/**
 * Splits lines of any length without joining the start of a long line again and again. If a line is longer than a string can
 * be, its first piece is delivered, which has the id of the call.
 */
function eachLine(stream, receive) {
  let start = [];
  let length = 0;
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    const lines = chunk.split("\n");
    const rest = lines.pop();
    if (lines.length > 0) {
      const isWhole = length + lines[0].length <= limits.MAX_STRING_LENGTH;
      lines[0] = isWhole ? start.join("") + lines[0] : start[0];
      start = [];
      length = 0;
    }
    length += rest.length;
    if (rest !== "" && length <= limits.MAX_STRING_LENGTH) start.push(rest);
    for (const line of lines) if (line !== "") receive(line);
  });
}

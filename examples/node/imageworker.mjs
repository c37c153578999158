/**
 * ImageWorker for Node: one file, no dependencies, Node 20 or newer. The types are in imageworker.d.ts.
 *
 *     const worker = new ImageWorker({ maxPerHost: 8 });
 *     const image = await worker.load("https://example.com/cat.jpg", { transform: { width: 256 } });
 *     console.log(image.path, image.width, image.height);
 *     await worker.close();
 *
 * Guarantees:
 *
 * - Reading never waits for writing: requests go to the pipe's buffer, all of one turn of the event loop at once.
 * - A line may be of any length. The worker's log on standard error is always read.
 * - Each call ends once: with a result, an ImageWorkerError, or the reason of its AbortSignal, which cancels the request.
 * - When the worker dies, every pending call fails with WorkerExited, which names the loads lost with it. The next call starts
 *   another worker, after a pause that doubles with each death in a row. After `maxRestarts` deaths calls fail at once;
 *   once `longestPauseMs` have passed since the last death, one call tries again.
 * - A call ends with TimeoutError if its deadline is over for 10 s and the worker says nothing.
 * - Every worker is asked for its protocol version before anything else. The answer is not waited for. If the version does not
 *   fit, all calls fail with IncompatibleWorkerError.
 * - A handler that throws, or whose promise is rejected, is reported by `process.emitWarning`, and everything goes on.
 * - A worker without pending calls does not keep the program alive, and ends with it. Ctrl-C reaches only the program.
 * - `close` ends the worker: it closes the input, waits, sends SIGTERM, waits, and sends SIGKILL.
 *
 * The protocol is in protocol/README.md.
 */

import { constants as limits } from "node:buffer";
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

/** The version of this client. */
export const version = "0.1.0";

/** The version of the protocol that this client speaks. */
export const protocolVersion = 1;

// Errors

/**
 * An error of the worker or of this client. Its class says what to do; `kind` is the exact reason. The table in README.md has
 * the class of each kind. `code` is the protocol's number, undefined for errors that this client makes.
 */
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

  /** The error of an answer, in the class of its kind; of a kind that is not known, in the class of its code. */
  static of({ code = -32603, message = "the worker's answer cannot be read", data }) {
    const known = classes.get(data?.kind ?? (code === -32603 ? "internal" : undefined));
    const errorClass = known ?? families[Math.floor(code / 1000)] ?? RequestError;
    return new errorClass(code, message, data ?? {});
  }
}

/** The request is wrong. Correct the program. */
export class RequestError extends ImageWorkerError {}

/** A parameter is missing, unknown, of the wrong type or out of range. `member` names it. */
export class InvalidParamsError extends RequestError {
  get member() {
    return this.data.member;
  }
}

/** The worker failed, not the request. Report it, with the log. */
export class InternalError extends ImageWorkerError {}

/** Another request cancelled this one: `cancel`, a new URL in its slot, or `close`. */
export class CancelledByRequest extends ImageWorkerError {}

/** The image could not be transferred. */
export class NetworkError extends ImageWorkerError {}

/** The connection failed: the name does not resolve, no connection, TLS, or a connection that broke. */
export class TransportError extends NetworkError {}

/** The server, or the whole load, took too long. `phase` says in which phase. */
export class TimeoutError extends NetworkError {
  get phase() {
    return this.data.phase;
  }
}

/** The server answered with a `status` other than 2xx. `response` has the header fields, if the load asked for them. */
export class HTTPStatusError extends NetworkError {
  get status() {
    return this.data.status;
  }

  get response() {
    return this.data.response;
  }
}

/** An option of the worker refused the transfer: `maxRedirects`, `maxBytes`, `network` or `failedTtlMs`. */
export class PolicyError extends NetworkError {}

/** The image is not in the cache, or a file cannot be read or written. */
export class CacheError extends ImageWorkerError {}

/** The content is not an image, cannot be decoded, or is not what `digest` says. */
export class ContentError extends ImageWorkerError {}

/** The worker takes no more requests, or none at present. */
export class LifecycleError extends ImageWorkerError {}

/**
 * The worker ended before it answered, or could not be started. `lost` has the URLs of all loads and prefetches that ended with
 * it. It is retryable unless no other worker will be started.
 */
export class WorkerExited extends LifecycleError {
  constructor({ exitStatus, log, retryable, url }, lost = []) {
    const what = exitStatus === null ? "the worker did not start" : `the worker ended (status ${exitStatus})`;
    const message = log.length > 0 ? `${what}: ${messageOf(log.at(-1))}` : what;
    super(undefined, message, { kind: "workerExited", retryable, exitStatus, log: [...log], url });
    this.lost = lost;
  }

  /** The exit status, or the name of the signal; null if the worker did not start. */
  get exitStatus() {
    return this.data.exitStatus;
  }

  /** The last lines of the worker's log. */
  get log() {
    return this.data.log;
  }
}

/** The text of a line of the log, which is a JSON object with `logFormat: "json"`. */
function messageOf(line) {
  try {
    return JSON.parse(line).message ?? line;
  } catch {
    return line;
  }
}

/** The worker was closed by `close`, so it takes no more calls. */
export class ClosedError extends LifecycleError {
  constructor() {
    super(undefined, "this ImageWorker is closed", { kind: "closed", retryable: false });
  }
}

/** The worker does not speak the protocol of this client. Use a client and a worker of one release. */
export class IncompatibleWorkerError extends LifecycleError {
  constructor({ reason, url }) {
    const message = `this client speaks protocol version ${protocolVersion}, and the worker ${reason}`;
    super(undefined, message, { kind: "incompatible", retryable: false, reason, url });
  }
}

const families = { 2: NetworkError, 3: CacheError, 4: ContentError, 5: LifecycleError };

const kindsOf = new Map([
  [RequestError, ["parseError", "invalidRequest", "methodNotFound"]],
  [InvalidParamsError, ["invalidParams"]],
  [InternalError, ["internal"]],
  [CancelledByRequest, ["cancelled"]],
  [TransportError, ["resolve", "connect", "tls", "truncated", "network"]],
  [TimeoutError, ["timeout"]],
  [HTTPStatusError, ["http"]],
  [PolicyError, ["redirects", "tooLarge", "blockedAddress", "recentlyFailed", "robots"]],
  [CacheError, ["notCached", "diskFull", "io"]],
  [
    ContentError,
    ["notAnImage", "unsupportedFormat", "corrupt", "tooManyPixels", "decoderCrashed", "decodeTimeout", "digestMismatch", "unwanted"],
  ],
  [LifecycleError, ["shuttingDown", "overloaded"]],
]);

/** The class of each kind of error that the protocol has. */
const classes = new Map([...kindsOf].flatMap(([errorClass, kinds]) => kinds.map((kind) => [kind, errorClass])));

// Settings and parameters

/** A kind of option: its values in words, whether a value is one, and the flags that it becomes. */
const option = (expected, accepts, flags = (flag, value) => [`${flag}=${value}`]) => ({ expected, accepts, flags });
const isText = (value) => typeof value === "string";
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isList = (value) => Array.isArray(value) && value.every(isText);

const text = option("a string", isText);
const count = option("a whole number", isCount);
const countOrAuto = option('a whole number or "auto"', (value) => isCount(value) || value === "auto");
const bytes = option("a whole number of bytes", isCount);
const milliseconds = option("a whole number of milliseconds", isCount, (flag, value) => [`${flag}=${value}ms`]);
const flag = option("true or false", (value) => typeof value === "boolean", (flag, value) => (value ? [flag] : []));
const list = option("a list of strings", isList, (flag, values) => values.map((value) => `${flag}=${value}`));
const joined = option("a list of strings", isList, (flag, values) => (values.length > 0 ? [`${flag}=${values}`] : []));

/** The options of the worker. The names are those of `configure`, which end in `Ms` for times; the others are flags. */
const workerOptions = {
  cacheDir: text,
  cacheNamespace: text,
  readOnlyCache: list,
  memoryLimit: bytes,
  diskLimit: bytes,
  maxAgeMs: milliseconds,
  maxConcurrent: countOrAuto,
  maxPerHost: countOrAuto,
  maxConnectionsPerHost: count,
  rate: option('a string such as "5/s"', isText),
  maxLine: bytes,
  maxRedirects: count,
  maxQueued: count,
  order: text,
  timeoutMs: milliseconds,
  connectTimeoutMs: milliseconds,
  minRate: bytes,
  deadlineMs: milliseconds,
  retries: count,
  failedTtlMs: milliseconds,
  maxBytes: bytes,
  maxPixels: count,
  decoders: count,
  decoderLifetime: count,
  decodeMemory: bytes,
  decodeTimeoutMs: milliseconds,
  minFree: option("a whole number of percent", isCount),
  verify: text,
  resolver: text,
  network: text,
  proxy: text,
  userAgent: text,
  header: option('a list of lines such as ["Accept-Language: en"]', isList, list.flags),
  cookies: text,
  files: text,
  insecure: flag,
  keyIgnoreQuery: list,
  events: joined,
  eof: text,
  exitStatus: flag,
  logLevel: text,
  logFormat: text,
  robots: text,
  metricsFile: text,
  trace: text,
  traceLimit: bytes,
};

const handler = option("a function", (value) => typeof value === "function");

/** The settings of this client. */
const clientSettings = {
  arguments: option('a list of flags such as ["--max-per-host=8"]', isList),
  binary: text,
  onEvent: handler,
  onLog: handler,
  onExit: handler,
  maxRestarts: count,
  longestPauseMs: option("a number of milliseconds", (value) => typeof value === "number" && value >= 0),
};

/** Throws a TypeError unless these are settings that exist, with values of their types. */
function checkSettings(settings) {
  checkMembers(settings, "the settings", "{ maxPerHost: 8 }");
  const known = { ...workerOptions, ...clientSettings };
  for (const [name, value] of Object.entries(settings)) {
    if (!Object.hasOwn(known, name)) {
      const near = nearest(name, Object.keys(known));
      throw new TypeError(`unknown setting ${name}${near ? ` (did you mean ${near}?)` : ""}`);
    }
    const { expected, accepts } = known[name];
    if (value !== undefined && !accepts(value)) throw new TypeError(`${name} must be ${expected}, not ${inWords(value)}`);
  }
}

/** The flags of the worker's options in these settings. */
function flagsOf(settings) {
  const flags = Object.entries(workerOptions).flatMap(([name, { flags }]) => {
    if (settings[name] === undefined) return [];
    const words = name.replace(/Ms$/, "").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return flags(`--${words}`, settings[name]);
  });
  return [...flags, ...(settings.arguments ?? [])];
}

/** Throws a TypeError unless the value is a plain object: the members of any other would be lost without a word. */
function checkMembers(value, what, example) {
  const prototype = typeof value === "object" && value !== null ? Object.getPrototypeOf(value) : undefined;
  // An object of another realm, such as that of a test runner, has another Object.prototype.
  const isPlain = prototype === null || (prototype !== undefined && Object.getPrototypeOf(prototype) === null);
  if (!isPlain) throw new TypeError(`${what} must be an object such as ${example}, not ${inWords(value)}`);
}

function inWords(value) {
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return `an object (${value.constructor?.name ?? "Object"})`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** The name that was probably meant: equal but for its spelling, or with at most two letters wrong. */
function nearest(name, names) {
  const letters = (text) => text.toLowerCase().replace(/[^a-z]/g, "").replace(/ms$/, "");
  const given = letters(name);
  const [[near, distance]] = names.map((each) => [each, editDistance(given, letters(each))]).sort((a, b) => a[1] - b[1]);
  return distance <= Math.min(2, given.length / 3) ? near : undefined;
}

/** The number of letters to insert, remove or replace (Levenshtein). */
function editDistance(some, others) {
  let row = Array.from({ length: others.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...some].entries()) {
    const next = [line + 1];
    for (let column = 0; column < others.length; column++) {
      const replaced = row[column] + (letter === others[column] ? 0 : 1);
      next.push(Math.min(replaced, row[column + 1] + 1, next[column] + 1));
    }
    row = next;
  }
  return row.at(-1);
}

/** Header fields as an object, from an object, a Headers, a Map, or another iterable of pairs. Repeated fields are joined. */
function fieldsOf(headers) {
  if (typeof headers?.[Symbol.iterator] !== "function" || typeof headers === "string") {
    checkMembers(headers, "headers", '{ "Accept-Language": "en" }, a Headers, a Map or a list of pairs');
    return headers;
  }
  const fields = new Map();
  for (const pair of headers) {
    if (!isList(pair) || pair.length !== 2) {
      throw new TypeError(`headers must have pairs of a name and a value, both strings, not ${inWords(pair)}`);
    }
    const [name, value] = pair;
    const key = name.toLowerCase();
    const field = fields.get(key);
    const separator = key === "cookie" ? "; " : ", ";
    fields.set(key, field ? [field[0], `${field[1]}${separator}${value}`] : [name, value]);
  }
  return Object.fromEntries(fields.values());
}

/** Parameters with all header fields as objects, those of the items of a prefetch included. */
function withFields(params) {
  const { headers, urls } = params ?? {};
  if (headers !== undefined) params = { ...params, headers: fieldsOf(headers) };
  if (Array.isArray(urls)) params = { ...params, urls: urls.map((item) => (item?.headers ? withFields(item) : item)) };
  return params;
}

/** Makes an iterator of URLs by one of these methods. A string is not a list of letters. */
function iteratorOf(urls, ...methods) {
  const method = methods.find((method) => typeof urls?.[method] === "function");
  if (!method || isText(urls)) throw new TypeError(`the URLs must be an iterable such as a list, not ${inWords(urls)}`);
  return urls[method]();
}

/** A file with absolute paths. A descriptor without `pid` is one of this process. */
function hostFile(file) {
  if (file.fd !== undefined) return { pid: process.pid, ...file };
  return file.root === undefined ? { ...file, path: absolute(file.path) } : { ...file, root: absolute(file.root) };
}

/** An absolute path, from a path or a file: URL. */
function absolute(path) {
  return resolve(path instanceof URL ? fileURLToPath(path) : path);
}

/** The outputs with absolute paths. */
function withPaths(outputs) {
  checkMembers(outputs, "outputs", '{ small: { transform: { width: 320 } } }');
  const resolved = ([name, output]) => [name, output?.saveTo === undefined ? output : { ...output, saveTo: absolute(output.saveTo) }];
  return Object.fromEntries(Object.entries(outputs).map(resolved));
}

// One worker process

/**
 * The worker to start: the argument, else $IMAGEWORKER, else that of the npm package, else the source tree's release build, else
 * $PATH. If there is none, it throws.
 */
export function findWorker(binary) {
  const chosen = binary || process.env.IMAGEWORKER;
  if (chosen) return chosen;
  const own = ["bin/imageworker", "../../.build/release/imageworker"].map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const directories = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  for (const candidate of [...own, ...directories.map((directory) => join(directory, "imageworker"))]) {
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // Look further.
    }
  }
  const advice = "install its npm package, put a release of it on the PATH, build it (swift build -c release), or set IMAGEWORKER to its path";
  throw Object.assign(new Error(`imageworker was not found: ${advice}`), { code: "ENOENT", syscall: "access" });
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
  /** For calls that may be late. */
  #isLooking = false;
  /** The number of looks since the worker wrote. */
  #silence = 0;
  /** The last call about which the worker was asked whether it knows it. */
  #askedID = 0;
  #outgoing = [];
  #child;
  #listener;
  /** The error of all further calls, without a URL, once the process has ended and all its output has been read. */
  end;
  ended;
  /** Resolves to the worker's answer to `initialize`. */
  ready;

  /** Whether the binary does not exist or must not be run. */
  #isMissing = false;

  /** Makes the error of a call from its URL, if the worker does not speak the protocol of this client. */
  #misfit;

  /**
   * `listener` has answered(), died(exitStatus, isMissing, isMisfit), which returns whether a restart is possible,
   * onEvent?(event), onLog?(line).
   */
  constructor(binary, flags, options, listener) {
    this.#listener = listener;
    this.ready = new Promise((resolveCall, rejectCall) => {
      this.#calls.set(0, { wanted: [], ignoreSignal() {}, resolve: resolveCall, reject: rejectCall });
    });
    this.ready.catch(() => {}); // Each call fails as well. A program need not wait for `ready`.
    // In a session of its own, Ctrl-C reaches only the program, which may want to finish its loads.
    let child;
    try {
      child = spawn(findWorker(binary), flags, { stdio: ["pipe", "pipe", "pipe"], detached: true });
    } catch (error) {
      if (!error.syscall) throw error; // A mistake of the program.
      // Some failures are not events, such as that of a binary that is being written.
      this.#child = {};
      this.#isMissing = error.syscall === "access";
      this.#note(error.message);
      this.ended = new Promise((done) => setImmediate(() => done(this.#finished(null))));
      return;
    }
    this.#child = child;
    children.add(child);
    child.on("error", (error) => {
      this.#isMissing = child.pid === undefined && error.code in refusals;
      this.#note(this.#isMissing ? `${child.spawnfile}: ${refusals[error.code]}` : error.message);
    });
    this.ended = new Promise((done) => child.on("close", (code, signal) => done(this.#finished(code ?? signal))));
    // Another process may hold the pipes of the ended one; "close" is emitted only when they are closed.
    child.on("exit", () => setTimeout(() => child.stdio.forEach((pipe) => pipe?.destroy()), 1000).unref());
    if (!child.stdin) return; // No descriptor was free. "error" and "close" are emitted nevertheless.
    // A worker that does not read cannot answer. For an ended process this does nothing.
    child.stdin.on("error", () => child.kill("SIGKILL"));
    child.stdout.on("end", () => child.kill("SIGKILL"));
    child.stdout.on("data", () => (this.#silence = 0));
    eachLine(child.stdout, (line) => this.#receive(line));
    eachLine(child.stderr, (line) => this.#note(line));
    const client = { name: "imageworker.mjs", version };
    this.send({ id: 0, method: "initialize", params: { protocolVersion, client, options } });
  }

  get pid() {
    return this.#child.pid;
  }

  call(method, params, { signal, onEvent }, late) {
    if (this.#misfit) throw this.#misfit();
    const id = ++this.#lastID;
    const line = encode({ id, method, params });
    const url = params?.url && String(params.url); // Throws if it cannot be converted to a string.
    return new Promise((resolveCall, rejectCall) => {
      const ignoreSignal = whenAborted(signal, (reason) => this.#giveUp(id, reason));
      if (this.#calls.size === 0) this.#holdProgram(true);
      const call = { url, late, wanted: wanted(method, params), onEvent, ignoreSignal, resolve: resolveCall, reject: rejectCall };
      this.#calls.set(id, call);
      this.#write(line);
      if (late && !this.#isLooking) this.#endLate(0);
    });
  }

  #giveUp(id, reason) {
    const { reject } = this.#take(id);
    this.tell("cancel", { id });
    reject(reason);
  }

  /**
   * Looks each second for calls that are late when the look is due. They go on while the worker writes: their answers may be on
   * the way. A look that comes much later than it was due follows a time in which this program did not run, and so did not read.
   */
  #endLate(due) {
    this.#silence += 1;
    this.#isLooking = false;
    for (const [id, { late, url }] of this.#calls) {
      if (!late) continue;
      this.#isLooking = true;
      if (late < due && this.#silence > 2) {
        const data = { kind: "timeout", retryable: false, url, phase: "client" };
        this.#giveUp(id, new TimeoutError(undefined, "no answer in time", data));
      }
    }
    const next = performance.now() + 1000;
    if (this.#isLooking) setTimeout(() => this.#endLate(next), 1000).unref();
  }

  /** Sends a request whose answer is ignored. It has an id, so that its outcome is not an event for the program. */
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

  /** Ends the process in steps of `graceMs`: close the input, SIGTERM, SIGKILL. Pending calls are cancelled unless `drain`. */
  async finish({ drain, graceMs }) {
    if (!drain) for (const id of this.#calls.keys()) if (id !== 0) this.tell("cancel", { id });
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
    const retryable = this.#listener.died(exitStatus, this.#isMissing, this.#misfit !== undefined);
    const facts = { exitStatus, log: this.#log, retryable };
    const lost = [...this.#calls.values()].flatMap((call) => call.wanted);
    this.end = this.#endCalls(this.#misfit ?? ((url) => new WorkerExited({ ...facts, url }, lost)));
    return this.end;
  }

  /** Rejects all pending calls with an error that is made from the URL of each. Returns that without a URL. */
  #endCalls(errorOf) {
    for (const [id, { url, reject }] of this.#calls) {
      this.#take(id);
      reject(errorOf(url));
    }
    return errorOf(undefined);
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

  /** An event without an id belongs to a notification and goes to the program. An event of an aborted call is dropped. */
  #receiveEvent(name, params) {
    const receiver = params.id === undefined ? this.#listener : this.#calls.get(params.id);
    callHandler(receiver?.onEvent, { name, params });
  }

  #receiveAnswer({ id, result, error }) {
    if (this.#misfit) return;
    if (id === 0) return this.#receiveGreeting(result, error);
    this.#listener.answered();
    if (id === null) return this.#askWhose(error);
    const call = this.#take(id);
    if (!call) {
      // The call was aborted meanwhile. Nobody else would release its pixels.
      if (result?.pixels) this.tell("release", { path: result.pixels.path, unused: true });
    } else if (error || result === undefined) {
      const isUnread = call.refusal && error?.code === -32600;
      call.reject(ImageWorkerError.of(isUnread ? call.refusal : error ?? {}));
    } else {
      call.resolve(result);
    }
  }

  /** The answer to `initialize`. If it is an error or names another version, no other answer can be trusted. */
  #receiveGreeting(result, error) {
    if (result?.protocolVersion === protocolVersion) return this.#take(0)?.resolve(result);
    const versions = error?.data?.supported ?? result?.protocolVersion;
    const reason = versions === undefined ? `answers: ${error?.message ?? "nothing that can be read"}` : `speaks ${versions}`;
    this.#misfit = (url) => new IncompatibleWorkerError({ reason, url });
    this.#endCalls(this.#misfit);
    this.#child.kill("SIGKILL");
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

/** Calls a handler of the program. Its error, or the rejection of its promise, ends neither the call nor the program. */
function callHandler(handler, value) {
  try {
    const outcome = handler?.(value);
    if (typeof outcome?.then === "function") outcome.then(undefined, report);
  } catch (error) {
    report(error);
  }
}

/** Reports the error of a handler as a warning of the process, which Node prints; `cause` is the error. */
function report(error) {
  const warning = new Error(`a handler of ImageWorker failed: ${error?.message ?? inspect(error)}`, { cause: error });
  warning.name = "ImageWorkerWarning";
  warning.detail = error?.stack;
  process.emitWarning(warning);
}

/** Throws a TypeError unless a handler can be called: an image from the cache has no event at which that would show. */
function checkHandler(value, name) {
  if (value !== undefined && !handler.accepts(value)) throw new TypeError(`${name} must be ${handler.expected}, not ${inWords(value)}`);
}

/** The actions for each signal. Thousands of calls may share one, and Node warns of more than ten listeners. */
const aborts = new WeakMap();

/** Calls `act` with the reason when the signal is aborted; throws the reason if it is. Returns a function that undoes this. */
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

const withDeadline = ["load", "probe", "process"];

/** Milliseconds after the deadline of a call until it ends without an answer: a worker that is stopped or hangs does not answer. */
const lateMs = 10_000;

/** Milliseconds. With a longer time, Node's timers fire at once. */
const longestTimer = 2 ** 31 - 1;

/** The abort reason of loads whose events or outcomes are not wanted any more. */
const unwanted = Symbol("unwanted");

/** Has a generator end at once when its loop is left. Otherwise it would end after its pending `next`, which may take long. */
function endsWhenLeft(generator, leaving) {
  for (const way of ["return", "throw"]) {
    const leave = generator[way].bind(generator);
    generator[way] = (value) => {
      leaving.abort(unwanted);
      return leave(value);
    };
  }
  return generator;
}

/** Whether an error is not about one load: a mistake of the program, or no worker can be started any more. */
function endsAllLoads(error) {
  if (!(error instanceof ImageWorkerError)) return true;
  return !error.retryable && ["closed", "incompatible", "workerExited"].includes(error.kind);
}

/** One worker, and the next when it dies. Methods have the names and parameters of the protocol. */
export class ImageWorker {
  #flags;
  #settings;
  /** The options that `configure` has changed. A worker that is started later gets them by `initialize`. */
  #configured;
  #life;
  #deaths = 0;
  #diedAt;
  #hasRun = false;
  #waiting = new Set();
  #pause;
  #isClosed = false;

  constructor(settings = {}) {
    checkSettings(settings);
    this.#flags = flagsOf(settings);
    const { binary, onEvent, onLog, onExit, maxRestarts = 5, longestPauseMs = 10_000, deadlineMs } = settings;
    this.#settings = { binary, onEvent, onLog, onExit, maxRestarts, longestPauseMs, deadlineMs };
    this.#start();
  }

  get pid() {
    return this.#life.pid;
  }

  /** The result of `initialize`, once the worker has answered. It is of the worker that runs now, or that ran last. */
  get ready() {
    return this.#life.ready;
  }

  // Loads

  async load(url, options = {}) {
    checkMembers(options, "the options", '{ priority: "high" }');
    const { signal, onEvent, saveTo, outputs, ...params } = options;
    if (onEvent !== undefined && !params.events) params.events = ["started", "progress", "retrying", "cached"];
    const request = { url, ...params };
    if (saveTo !== undefined) request.saveTo = absolute(saveTo);
    if (outputs !== undefined) request.outputs = withPaths(outputs);
    return this.call("load", request, { signal, onEvent });
  }

  async loadFile(file, options = {}) {
    checkMembers(options, "the options", '{ transform: { width: 256 } }');
    const { signal, saveTo, outputs, ...params } = options;
    const request = { file: hostFile(isText(file) || file instanceof URL ? { path: file } : file), ...params };
    if (saveTo !== undefined) request.saveTo = absolute(saveTo);
    if (outputs !== undefined) request.outputs = withPaths(outputs);
    return this.call("load", request, { signal });
  }

  loadEvents(url, options = {}) {
    const leaving = new AbortController();
    return endsWhenLeft(this.#eventsOf(url, options, leaving), leaving);
  }

  async *#eventsOf(url, { signal, ...options }, leaving) {
    const ignoreSignal = whenAborted(signal, (reason) => leaving.abort(reason));
    let waiting = [];
    let wake = () => {};
    let ended = false;
    const onEvent = (event) => {
      waiting.push(event);
      wake();
    };
    const loading = this.load(url, { ...options, signal: leaving.signal, onEvent });
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

  loadAll(entries, options = {}) {
    checkMembers(options, "the options", "{ maxInFlight: 100 }");
    const { maxInFlight = 1000, ...rest } = options;
    if (!isCount(maxInFlight) || maxInFlight === 0) {
      throw new TypeError(`maxInFlight must be a whole number from 1, not ${inWords(maxInFlight)}`);
    }
    const leaving = new AbortController();
    const iterator = iteratorOf(entries, Symbol.asyncIterator, Symbol.iterator);
    return endsWhenLeft(this.#outcomes(iterator, rest, maxInFlight, leaving), leaving);
  }

  /**
   * Yields an outcome for each entry. The next entry is read when fewer than `maxInFlight` loads are pending or have ended
   * without being yielded. An error that every further load would meet ends the reading, and is thrown after the last outcome.
   */
  async *#outcomes(entries, { signal, ...options }, maxInFlight, leaving) {
    const ignoreSignal = whenAborted(signal, (reason) => leaving.abort(reason));
    const ended = [];
    let pending = 0;
    let isRead = false;
    let failure;
    let [wake, readOn] = [() => {}, () => {}];
    leaving.signal.addEventListener("abort", () => [wake, readOn].forEach((resume) => resume()));

    const fail = (error) => (failure ??= { error });
    const load = async (entry, index) => {
      const { url, id, ...own } = isText(entry) || entry instanceof URL ? { url: entry } : entry;
      try {
        const image = await this.load(url, { ...options, ...own, signal: leaving.signal });
        if (leaving.signal.aborted) return this.#release(image);
        ended.push({ url: String(url), id, index, image });
      } catch (error) {
        if (endsAllLoads(error)) fail(error);
        else ended.push({ url: String(url), id, index, error });
      } finally {
        pending -= 1;
        wake();
      }
    };
    const read = async () => {
      for (let index = 0; !failure && !leaving.signal.aborted; ) {
        if (pending + ended.length >= maxInFlight) {
          await new Promise((done) => (readOn = done));
          continue;
        }
        const step = entries.next();
        const { done, value } = typeof step.then === "function" ? await step : step;
        if (done) return;
        if (!isText(value)) checkMembers(value instanceof URL ? {} : value, "an entry", "{ url }, a string or a URL");
        pending += 1;
        load(value, index++);
      }
    };
    read().catch(fail).finally(() => {
      isRead = true;
      wake();
    });
    try {
      while (!isRead || pending > 0 || ended.length > 0) {
        leaving.signal.throwIfAborted();
        if (ended.length === 0) await new Promise((done) => (wake = done));
        if (ended.length === 0 || leaving.signal.aborted) continue;
        const outcome = ended.shift();
        readOn();
        yield outcome;
      }
      leaving.signal.throwIfAborted();
      if (failure) throw failure.error;
    } catch (error) {
      if (error !== unwanted) throw error;
    } finally {
      ignoreSignal();
      leaving.abort(unwanted);
      if (!isRead) Promise.resolve(entries.return?.()).catch(() => {});
      for (const { image } of ended) if (image) this.#release(image);
    }
  }

  async prefetch(urls, options = {}) {
    checkMembers(options, "the options", '{ priority: "low" }');
    const { signal, onEvent, ...params } = options;
    if (onEvent !== undefined && !params.events) params.events = ["progress"];
    const list = { [Symbol.iterator]: () => iteratorOf(urls, Symbol.iterator) };
    return this.call("prefetch", { urls: [...list], ...params }, { signal, onEvent });
  }

  /** The pixels of a load with `deliver: "pixels"`, copied into a Buffer and released: Node has no way to map memory. */
  async takePixels(image) {
    if (!image?.pixels) throw new TypeError('the image has no pixels: load it with deliver: "pixels"');
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
    if (pixels) this.#life.tell("release", { path: pixels.path, unused: true });
  }

  // The other methods of the protocol

  async cancel(target) {
    return this.call("cancel", target);
  }

  async prioritize(target) {
    return this.call("prioritize", target);
  }

  async pause() {
    return this.call("pause");
  }

  async resume() {
    return this.call("resume");
  }

  async probe(url, options = {}) {
    checkMembers(options, "the options", '{ timeoutMs: 5000 }');
    const { signal, ...params } = options;
    return this.call("probe", { url, ...params }, { signal });
  }

  async process({ file, data, outputs, ...params }, { signal } = {}) {
    if (file !== undefined) params.file = hostFile(file);
    if (data !== undefined) params.data = isText(data) ? data : Buffer.from(data).toString("base64");
    if (outputs !== undefined) params.outputs = withPaths(outputs);
    return this.call("process", params, { signal });
  }

  async query({ file, ...target }) {
    return this.call("query", file === undefined ? target : { file: hostFile(file), ...target });
  }

  async store({ path, data, ...params }) {
    if (path !== undefined) params.path = absolute(path);
    if (data !== undefined) params.data = isText(data) ? data : Buffer.from(data).toString("base64");
    return this.call("store", params);
  }

  async clear({ file, ...filter } = {}) {
    return this.call("clear", file === undefined ? filter : { file: hostFile(file), ...filter });
  }

  /** Takes an image with pixels, its `pixels`, `{ path, unused }` or `{ all: true, unused }`. */
  async release(target) {
    const { path, unused } = target.pixels ?? target;
    return this.call("release", path === undefined ? target : { path, unused });
  }

  async stats() {
    return this.call("stats");
  }

  async metrics() {
    return this.call("metrics");
  }

  async configure(options = {}) {
    const values = await this.call("configure", options);
    this.#configured = { ...this.#configured, ...options };
    return values;
  }

  async startTrace(path, options = {}) {
    return this.call("trace", { action: "start", path: absolute(path), ...options });
  }

  async stopTrace() {
    return this.call("trace", { action: "stop" });
  }

  async call(method, params = {}, options = {}) {
    checkHandler(options.onEvent, "onEvent");
    if (this.#isClosed) throw new ClosedError();
    const deadline = params?.deadlineMs ?? this.#configured?.deadlineMs ?? this.#settings.deadlineMs;
    const late = deadline > 0 && withDeadline.includes(method) ? performance.now() + Number(deadline) + lateMs : undefined;
    const life = this.#life.end ? await this.#running(options.signal) : this.#life;
    return life.call(method, withFields(params), options, late);
  }

  notify(method, params = {}) {
    if (this.#isClosed) throw new ClosedError();
    if (!this.#life.end) this.#life.send({ method, params: withFields(params) });
  }

  async close(options = {}) {
    checkMembers(options, "the options", "{ drain: true }");
    const { drain = false, graceMs = drain ? Infinity : 5000 } = options;
    this.#isClosed = true;
    this.#endPause();
    if (!this.#life.end) await this.#life.finish({ drain, graceMs });
  }

  // Start, end and restart

  #start() {
    const { binary, onEvent, onLog, onExit } = this.#settings;
    const answered = () => (this.#deaths = 0);
    const died = (...facts) => this.#died(...facts);
    this.#life = new Life(binary, this.#flags, this.#configured, { onEvent, onLog, answered, died });
    this.#life.ended.then((end) => {
      if (!this.#isClosed) callHandler(onExit, end);
    });
  }

  /** Whether another worker can be started. A binary that existed before may be about to be replaced. */
  #died(exitStatus, isMissing, isMisfit) {
    this.#deaths += 1;
    this.#diedAt = performance.now();
    this.#hasRun ||= exitStatus !== null;
    const isHopeless = isMisfit || hopeless.has(exitStatus) || (isMissing && !this.#hasRun);
    return !this.#isClosed && !isHopeless && this.#settings.maxRestarts > 0;
  }

  /** Milliseconds until the next start. Throws if there will be none, or if too many workers died and it is not due yet. */
  #pauseLeft() {
    const { maxRestarts, longestPauseMs } = this.#settings;
    const { end } = this.#life;
    if (this.#isClosed) throw new ClosedError();
    if (end instanceof IncompatibleWorkerError) throw new IncompatibleWorkerError(end.data);
    if (!end.retryable) throw new WorkerExited(end.data);
    const isGivenUp = this.#deaths > maxRestarts;
    const pauseMs = isGivenUp ? longestPauseMs : Math.min(100 * 2 ** (this.#deaths - 1), longestPauseMs);
    const leftMs = Math.max(this.#diedAt + pauseMs - performance.now(), 0);
    if (isGivenUp && leftMs > 0) throw new WorkerExited(end.data);
    return leftMs;
  }

  /** Waits for a running worker. */
  async #running(signal) {
    while (this.#life.end) {
      const dead = this.#life;
      await this.#wait(this.#pauseLeft(), signal);
      if (this.#life === dead && !this.#isClosed) this.#start();
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

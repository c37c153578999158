// Every method, event and error of examples/node/imageworker.d.ts, as a program uses them, and mistakes that must not compile.
// test_node_types.py has tsc read it.

import {
  CacheError,
  CancelledByRequest,
  ClosedError,
  ContentError,
  HTTPStatusError,
  ImageWorker,
  ImageWorkerError,
  IncompatibleWorkerError,
  InternalError,
  InvalidParamsError,
  LifecycleError,
  NetworkError,
  PolicyError,
  RequestError,
  TimeoutError,
  TransportError,
  WorkerExited,
  findWorker,
  protocolVersion,
  version,
  type Image,
  type LoadEvent,
  type Outcome,
  type PrefetchEvent,
  type WorkerEvent,
} from "../../examples/node/imageworker.mjs";

/** The interface that `await using` needs. tsc reads `await using` from 5.2 on. */
export const disposable: { [Symbol.asyncDispose](): PromiseLike<void> } = new ImageWorker();

const url = "https://example.com/cat.jpg";

export async function settings(): Promise<string> {
  const worker = new ImageWorker({
    cacheDir: "cache",
    cacheNamespace: "thumbnails",
    readOnlyCache: ["/srv/cache"],
    memoryLimit: 2 ** 27,
    diskLimit: 2 ** 30,
    maxAgeMs: 1000,
    maxConcurrent: "auto",
    maxPerHost: 8,
    maxConnectionsPerHost: 0,
    rate: "5/s",
    maxLine: 2 ** 25,
    maxRedirects: 10,
    maxQueued: 1000,
    order: "lifo",
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    minRate: 1024,
    deadlineMs: 60_000,
    retries: 2,
    failedTtlMs: 60_000,
    maxBytes: 10 ** 8,
    maxPixels: 10 ** 8,
    decoders: 2,
    decodeTimeoutMs: 10_000,
    minFree: 5,
    verify: "random",
    resolver: "c-ares",
    network: "public",
    proxy: "",
    userAgent: "example",
    header: ["Accept-Language: en"],
    cookies: "cookies.txt",
    insecure: false,
    keyIgnoreQuery: ["sig"],
    events: ["progress"],
    eof: "drain",
    exitStatus: false,
    logLevel: "debug",
    trace: "trace-%p.json",
    traceLimit: 2 ** 28,
    arguments: ["--max-per-host=8"],
    binary: findWorker(),
    onEvent,
    onLog: (line: string) => line.length,
    onExit: (end: WorkerExited | IncompatibleWorkerError) => end.message,
    maxRestarts: 5,
    longestPauseMs: 10_000,
  });
  // @ts-expect-error: flags are no settings.
  new ImageWorker(["--cache-dir", "cache"]);
  // @ts-expect-error: the name is cacheDir.
  new ImageWorker({ cachedir: "cache" });
  // @ts-expect-error: the number is a string.
  new ImageWorker({ maxPerHost: "8" });
  const { server, protocolVersion: spoken, methods, formats, limits, cache } = await worker.ready;
  void [spoken === protocolVersion, methods.includes("load"), formats?.decode.includes("avif"), limits.maxURL, cache.directory];
  return server.version + version + worker.pid?.toFixed();
}

export async function loads(worker: ImageWorker, signal: AbortSignal, anyDelivery: "path" | "data"): Promise<string> {
  const image = await worker.load(url, {
    key: "cat",
    priority: "high",
    group: "page",
    slot: "view",
    headers: { Referer: "https://example.com/" },
    cache: "no-cache",
    store: "memory",
    saveTo: new URL("file:///tmp/cat.jpg"),
    transform: { width: 256, fit: "cover", crop: { x: 0, y: 0, width: 9, height: 9 }, frames: "all", cornerRadius: 3, metadata: ["artist", "gps"] },
    placeholder: true,
    facts: ["digest", "exif", "gps", "perceptualHash"],
    validate: "decode",
    events: ["started", "preview"],
    timeoutMs: 5000,
    deadlineMs: undefined,
    retries: 0,
    maxBytes: 10 ** 6,
    retryFailed: true,
    response: true,
    digest: `sha256-${"0".repeat(64)}`,
    signal,
    onEvent: onLoadEvent,
  });
  const path: string = image.path;
  const { digest, kept, placeholder, perceptualHash, response, timing } = image;
  void [digest?.length, perceptualHash?.length, image.exif?.iso?.toFixed(), image.gps?.latitude.toFixed()];
  void [kept === true, placeholder?.thumbhash, response?.headers["etag"], timing?.totalMs.toFixed()];
  await worker.load(url, { transform: { width: 9, height: 9, fit: "cover", crop: { x: 0.5, y: 0.3 } } });
  await worker.load(url, { transform: { width: 9, height: 9, fit: "cover", crop: "attention" } });
  await worker.load(new URL(url), { headers: new Headers({ a: "b" }) });
  await worker.load(url, { headers: new Map([["a", "b"]]) });
  await worker.load(url, { headers: [["a", "b"]] });

  const data: string = (await worker.load(url, { deliver: "data" })).data;
  const pixels = await worker.load(url, { deliver: "pixels" });
  const rows: Uint8Array = await worker.takePixels(pixels);
  const stride: number = pixels.pixels.stride;
  const nothing: undefined = (await worker.load(url, { deliver: "none" })).path;
  const some: string | undefined = (await worker.load(url, { deliver: anyDelivery })).path;
  const any: Image = await worker.load(url, { deliver: "path" as "path" | "pixels" });
  void [path, data, rows, stride, nothing, some, any.pixels?.channels];

  // @ts-expect-error: there is no such priority.
  await worker.load(url, { priority: "urgent" });
  // @ts-expect-error: there is no such parameter.
  await worker.load(url, { colour: "red" });
  // @ts-expect-error: there is no such delivery.
  await worker.load(url, { deliver: "file" });
  // @ts-expect-error: the value is a number.
  await worker.load(url, { headers: { a: 1 } });
  // @ts-expect-error: a thumbnail has no pixels to take.
  await worker.takePixels(image);
  // @ts-expect-error: an image that comes as data has no path.
  (await worker.load(url, { deliver: "data" })).path.length;
  // @ts-expect-error: the width may be missing.
  image.width.toFixed();
  return image.path;
}

export async function manyLoads(worker: ImageWorker, signal: AbortSignal): Promise<void> {
  async function* rows() {
    yield { url, id: 1, key: "cat" };
    yield { url: new URL(url), id: 2, headers: new Map([["a", "b"]]) };
  }
  for await (const outcome of worker.loadAll(rows(), { maxInFlight: 100, signal, transform: { width: 9 }, onEvent: onLoadEvent })) {
    const id: number = outcome.id;
    if (outcome.image) void [id, outcome.image.path.length, outcome.url, outcome.index];
    else void [outcome.error.kind, outcome.error.retryable];
  }
  for await (const { image, error } of worker.loadAll([url, new URL(url)], { deliver: "data" })) {
    if (error) void error.message;
    else void image.data.length;
  }
  const outcome: Outcome = (await worker.loadAll([url]).next()).value!;
  void outcome;
  // @ts-expect-error: an entry has a url.
  worker.loadAll([{ id: 1 }]);
  // @ts-expect-error: the name is maxInFlight.
  worker.loadAll([url], { concurrency: 10 });
  for await (const event of worker.loadEvents(url, { cache: "refresh", signal })) {
    if (event.name === "completed") void event.params.path.length;
    else onLoadEvent(event);
  }
}

export async function otherMethods(worker: ImageWorker, signal: AbortSignal): Promise<void> {
  const items = new Set([url, new URL(url), { url, key: "2", headers: new Headers() }]);
  const { total, downloaded, cached, failed, cancelled, bytes, errors } = await worker.prefetch(items, {
    priority: "lowest",
    group: "page",
    headers: { a: "b" },
    transform: { width: 9 },
    events: ["progress", "failed"],
    signal,
    onEvent: onPrefetchEvent,
  });
  void [total + downloaded + cached + failed + cancelled + bytes, errors[0]?.kind === "http"];

  for (const target of [{ url: new URL(url) }, { group: "page" }, { slot: "view" }]) {
    void [(await worker.cancel(target)).cancelled, (await worker.prioritize({ ...target, priority: "low" })).changed];
  }
  await worker.cancel({ all: true });
  // @ts-expect-error: the priority is missing.
  await worker.prioritize({ group: "page" });
  // @ts-expect-error: there is no target.
  await worker.cancel({});

  void [(await worker.pause()).paused, (await worker.resume()).paused];

  const { memory, disk, fresh, reason, storedAt, lease, failure } = await worker.query({ url, transform: { width: 9 } });
  void [memory && disk && fresh, reason.length, storedAt?.length, lease?.pid, failure === "http"];
  await worker.query({ key: "cat" });
  // @ts-expect-error: neither a url nor a key.
  await worker.query({});

  const stored = await worker.store({ url, data: new Uint8Array(9) });
  void stored.path.length;
  await worker.store({ key: "cat", path: "cat.jpg" });
  // @ts-expect-error: neither a path nor data.
  await worker.store({ url });

  void [(await worker.clear()).removed, (await worker.clear({ tier: "disk", olderThanSeconds: 60 })).bytes];
  await worker.clear({ expired: true });

  const image = await worker.load(url, { deliver: "pixels" });
  void (await worker.release(image)).released;
  await worker.release(image.pixels);
  await worker.release({ all: true });

  const { queue, origins, resolver, transfers, decoders, rssBytes, disk: { evictedFor } } = await worker.stats();
  void [queue.waiting.high, origins[0]?.health === "down", resolver.kind, transfers.bytes, decoders.sandbox, rssBytes, evictedFor];

  const options = await worker.configure({ maxPerHost: "auto", rate: null, proxy: null, header: [] });
  const deadlineMs: number = options.deadlineMs;
  // @ts-expect-error: that is fixed from the start.
  await worker.configure({ cacheDir: "cache" });

  const [{ limit }, { events }] = [await worker.startTrace("trace.json", { limit: 2 ** 20 }), await worker.stopTrace()];
  void [limit, events, (await worker.call("trace", { action: "stop" })).dropped];
  void [deadlineMs, (await worker.call("stats")).uptimeMs, (await worker.call("clear", { key: "cat" })).removed];
  void (await worker.call("initialize", { protocolVersion: 1, client: { name: "example" }, options: { retries: 0 } })).server;
  // @ts-expect-error: the target is missing.
  await worker.call("cancel");
  // @ts-expect-error: there is no such method.
  await worker.call("fetch");
  worker.notify("prefetch", { urls: [url] });
  worker.notify("shutdown", { mode: "drain" });
  await worker.close({ drain: true, graceMs: 1000 });
}

function onLoadEvent(event: LoadEvent): number | string {
  switch (event.name) {
    case "started":
      return event.params.attempt;
    case "progress":
      return event.params.received / (event.params.total ?? 1);
    case "retrying":
      return event.params.delayMs + event.params.kind;
    case "cached":
      return event.params.cache;
    case "preview":
      return event.params.path + event.params.scan;
    default:
      return nothingElse(event);
  }
}

function nothingElse(event: never): never {
  return event;
}

function onPrefetchEvent(event: PrefetchEvent): number | string {
  switch (event.name) {
    case "progress":
      return event.params.done / event.params.total;
    case "completed":
      return event.params.key;
    case "failed":
      return event.params.error.data.kind;
    default:
      return nothingElse(event);
  }
}

function onEvent(event: WorkerEvent): string {
  if (event.name === "failed") return event.params.error.message;
  if (event.name === "completed" && "uptimeMs" in event.params) return event.params.rssBytes.toFixed();
  // @ts-expect-error: an event that has ended has no attempt.
  if (event.name === "completed") return event.params.attempt;
  return event.name;
}

export function errors(error: ImageWorkerError): string | number | undefined {
  if (error instanceof InvalidParamsError) return error.member;
  if (error instanceof RequestError) return error.code;
  if (error instanceof InternalError || error instanceof CancelledByRequest) return error.kind;
  if (error instanceof HTTPStatusError) return error.status + (error.response?.status ?? 0);
  if (error instanceof TimeoutError) return error.phase === "deadline" ? error.url : error.phase;
  if (error instanceof TransportError) return error.kind === "tls" ? error.message : error.data.retryAfterMs;
  if (error instanceof PolicyError) return error.kind === "tooLarge" ? error.url : error.name;
  if (error instanceof NetworkError) return error.kind;
  if (error instanceof CacheError) return error.kind === "notCached" ? 0 : 1;
  if (error instanceof ContentError) return error.kind === "corrupt" ? 0 : 1;
  if (error instanceof WorkerExited) return error.lost.join() + error.log.join() + error.exitStatus;
  if (error instanceof ClosedError || error instanceof IncompatibleWorkerError) return error.message;
  if (error instanceof LifecycleError) return error.kind === "overloaded" ? 0 : 1;
  // @ts-expect-error: there is no such kind.
  if (error.kind === "purple") return 0;
  return error.kind;
}

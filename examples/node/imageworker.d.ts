/** The types of imageworker.mjs. The names are those of protocol/openrpc.json. */

declare global {
  interface SymbolConstructor {
    /** Declared for libraries before TypeScript 5.2, which lack it. */
    readonly asyncDispose: unique symbol;
  }
}

export type Priority = "lowest" | "low" | "normal" | "high" | "highest";
export type CacheMode = "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached" | "refresh";
export type LoadEventName = "started" | "progress" | "retrying" | "preview" | "cached";
export type PrefetchEventName = "progress" | "completed" | "failed";
export type EventName = "started" | "progress" | "retrying" | "cached" | "preview" | "completed" | "failed";
export type Method =
  | "initialize" | "load" | "prefetch" | "cancel" | "prioritize" | "pause" | "resume" | "query" | "store" | "clear"
  | "release" | "stats" | "configure" | "shutdown";
export type Format = "jpeg" | "png" | "gif" | "webp" | "avif" | "heic" | "jxl" | "jp2" | "tiff" | "bmp" | "ico" | "svg";

/** The members of `transform`. See "Transforms" in protocol/README.md. */
export interface Transform {
  width?: number;
  height?: number;
  fit?: "inside" | "contain" | "cover" | "fill";
  enlarge?: boolean;
  rotate?: "auto" | "none";
  crop?: { x: number; y: number; width: number; height: number };
  format?: "keep" | "jpeg" | "png" | "webp" | "avif";
  /** 1 to 100. Default: 80, in AVIF 60; a WebP of unscaled artwork is lossless. */
  quality?: number;
  frames?: "first" | "all";
  background?: string;
  blur?: number;
  grayscale?: boolean;
  cornerRadius?: number;
}

export interface LoadParams {
  key?: string;
  priority?: Priority;
  group?: string;
  slot?: string;
  headers?: Record<string, string>;
  cache?: CacheMode;
  store?: "all" | "memory" | "disk" | "none";
  deliver?: "path" | "data" | "pixels" | "none";
  saveTo?: string;
  transform?: Transform;
  placeholder?: boolean;
  validate?: "none" | "header" | "decode";
  events?: LoadEventName[];
  timeoutMs?: number;
  deadlineMs?: number;
  retries?: number;
  maxBytes?: number;
  retryFailed?: boolean;
  response?: boolean;
  digest?: string;
}

/** Decoded pixels in a file to map: 8-bit sRGB, rows of `stride` bytes, straight alpha. They belong to the host until `release`. */
export interface Pixels {
  path: string;
  offset: number;
  width: number;
  height: number;
  stride: number;
  /** 1 grey, 3 R G B, 4 R G B A. */
  channels: number;
  bytes: number;
}

/** A loaded image, as the worker sent it. */
export interface Image {
  url?: string;
  key: string;
  cache: "miss" | "memory" | "disk" | "revalidated" | "stale";
  bytes: number;
  mediaType: string;
  format?: Format;
  width?: number;
  height?: number;
  /** A file whose bytes never change and that stays for at least 60 seconds. */
  path?: string;
  /** Base64. */
  data?: string;
  pixels?: Pixels;
  /** False if the disk cache could not store the image. */
  kept?: boolean;
  /** True if a decode found that the original is damaged. The decoded part is as in browsers. */
  damaged?: boolean;
  finalURL?: string;
  frames?: number;
  orientation?: number;
  response?: { status: number; headers: Record<string, string | string[]> };
  attempts?: number;
  placeholder?: { thumbhash: string; color: string };
  source?: { bytes: number; format?: Format; width?: number; height?: number };
  timing?: { queuedMs?: number; dnsMs?: number; connectMs?: number; tlsMs?: number; firstByteMs?: number; totalMs: number };
}

export interface PrefetchParams {
  priority?: Priority;
  group?: string;
  headers?: Record<string, string>;
  transform?: Transform;
  events?: PrefetchEventName[];
}

export interface PrefetchResult {
  total: number;
  downloaded: number;
  cached: number;
  failed: number;
  cancelled: number;
  bytes: number;
  /** The first 100. */
  errors: { url: string; kind: ErrorKind }[];
}

/** A URL of a `prefetch` with parameters of its own. */
export interface PrefetchItem {
  url: string;
  key?: string;
  headers?: Record<string, string>;
}

export interface WorkerEvent {
  name: EventName;
  params: Record<string, any>;
}

export interface CallOptions {
  /** Aborting it cancels the request; the promise is rejected with its reason. */
  signal?: AbortSignal;
  onEvent?: (event: WorkerEvent) => void;
}

export type ErrorKind =
  | "parseError" | "invalidRequest" | "methodNotFound" | "invalidParams" | "internal"
  | "cancelled"
  | "resolve" | "connect" | "tls" | "timeout" | "http" | "redirects" | "truncated" | "tooLarge" | "blockedAddress"
  | "recentlyFailed" | "network"
  | "notCached" | "diskFull" | "io"
  | "notAnImage" | "unsupportedFormat" | "corrupt" | "tooManyPixels" | "decoderCrashed" | "decodeTimeout"
  | "digestMismatch"
  | "shuttingDown" | "overloaded";

/** An error that the worker answered. Its class is the family; switch on `kind` for more. protocol/README.md lists all. */
export class ImageWorkerError extends Error {
  constructor(code: number, message: string, data: Record<string, any>);
  readonly code: number;
  readonly kind: ErrorKind | "workerExited";
  readonly retryable: boolean;
  readonly url?: string;
  readonly data: Record<string, any>;
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

/**
 * The worker ended before it answered. `data` has its exit status or signal, null if it did not start, and the end of its log.
 * It is retryable unless no other worker will be started.
 */
export class WorkerExited extends LifecycleError {
  constructor(
    facts: { exitStatus: number | string | null; log: string[]; retryable: boolean; url?: string },
    lost?: string[],
  );
  /** The URLs of all loads and prefetches that ended with it. */
  readonly lost: string[];
}

export interface Settings {
  /** Options of the worker, such as ["--max-per-host", "8"]. */
  options?: string[];
  /** Default: $IMAGEWORKER, else this package's release build, else `imageworker` on the PATH. */
  binary?: string;
  /** Gets the outcomes of requests that were sent by `notify`. */
  onEvent?: (event: WorkerEvent) => void;
  /** Gets the lines of the worker's log, and problems of the process. */
  onLog?: (line: string) => void;
  /** Gets each unexpected end, with the loads `lost`. */
  onExit?: (end: WorkerExited) => void;
  /**
   * Maximum number of restarts in a row without an answer in between. After that, calls fail at once;
   * once `longestPauseMs` have passed since the last death, one call tries again. 0 never restarts. Default: 5.
   */
  maxRestarts?: number;
  /** The pause before a restart is 100 ms, doubling to this. Default: 10,000. */
  longestPauseMs?: number;
}

/** The worker to start: the argument, else $IMAGEWORKER, else this package's release build, else $PATH. */
export function findWorker(binary?: string): string;

/** One worker, and the next when it dies. It starts at once; while no call is pending, it does not keep the program alive. */
export class ImageWorker {
  constructor(settings?: Settings);
  readonly pid: number | undefined;

  /** Loads one image. With `onEvent`, `events` defaults to all but `preview`. */
  load(url: string, options?: LoadParams & CallOptions): Promise<Image>;

  /** Loads one image and yields its events; the last is `completed` with the result. Leaving the loop early cancels the load. */
  loadEvents(url: string, options?: LoadParams & { signal?: AbortSignal }): AsyncGenerator<WorkerEvent, void, undefined>;

  /** Loads images into the cache. */
  prefetch(urls: (string | PrefetchItem)[], options?: PrefetchParams & CallOptions): Promise<PrefetchResult>;

  /** The pixels of a load with `deliver: "pixels"`, copied into a Buffer and released: Node has no way to map memory. */
  takePixels(image: Image): Promise<Uint8Array>;

  /** Any method of the protocol, by its name; resolves to its result as it came. */
  call(method: Method, params?: Record<string, any>, options?: CallOptions): Promise<any>;

  /** Sends a request that is carried out but not answered. Lost when the worker is dead. */
  notify(method: Method, params?: Record<string, any>): void;

  /** Ends the worker. Calls still pending are cancelled; earlier notifications are carried out if `graceMs` suffices. */
  close(graceMs?: number): Promise<void>;

  /** `close`, for `await using worker = new ImageWorker()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

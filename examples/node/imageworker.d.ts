/** The types of imageworker.mjs. The names are those of protocol/openrpc.json. */

declare global {
  interface SymbolConstructor {
    /** Declared for libraries before TypeScript 5.2, which lack it. */
    readonly asyncDispose: unique symbol;
  }
}

/** The version of this client. */
export const version: string;
/** The version of the protocol that this client speaks. */
export const protocolVersion: number;

// Names

export type Priority = "lowest" | "low" | "normal" | "high" | "highest";
export type CacheMode = "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached" | "refresh";
export type Deliver = "path" | "data" | "pixels" | "none";
export type LoadEventName = "started" | "progress" | "retrying" | "preview" | "cached";
export type PrefetchEventName = "progress" | "completed" | "failed";
export type EventName = "started" | "progress" | "retrying" | "cached" | "preview" | "completed" | "failed";
export type Method =
  | "initialize" | "load" | "prefetch" | "probe" | "process" | "cancel" | "prioritize" | "pause" | "resume" | "query" | "store"
  | "clear" | "release" | "stats" | "metrics" | "configure" | "trace" | "shutdown";
export type Format = "jpeg" | "png" | "gif" | "webp" | "avif" | "heic" | "jxl" | "jp2" | "tiff" | "bmp" | "ico" | "svg";
export type ErrorKind =
  | "parseError" | "invalidRequest" | "methodNotFound" | "invalidParams" | "internal"
  | "cancelled"
  | "resolve" | "connect" | "tls" | "timeout" | "http" | "redirects" | "truncated" | "tooLarge" | "blockedAddress"
  | "recentlyFailed" | "network" | "robots"
  | "notCached" | "diskFull" | "io"
  | "notAnImage" | "unsupportedFormat" | "corrupt" | "tooManyPixels" | "decoderCrashed" | "decodeTimeout"
  | "digestMismatch" | "unwanted"
  | "shuttingDown" | "overloaded";

// Parameters. A member that is undefined is not given.

/** Header fields: an object, a Headers, a Map, or another iterable of pairs. A field that is repeated is joined. */
export type HeaderFields =
  | { readonly [name: string]: string | undefined }
  | Headers
  | readonly (readonly [string, string])[]
  | Iterable<readonly [string, string]>;

export interface Crop {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** In fractions of the sides of the oriented source, from 0 to 1. */
export interface FocalPoint {
  x: number;
  y: number;
}

/** The members of `transform`. See protocol/images.md. */
export interface Transform {
  width?: number;
  height?: number;
  fit?: "inside" | "contain" | "cover" | "fill";
  enlarge?: boolean;
  rotate?: "auto" | "none";
  /** A rectangle of the source; or, with `fit: "cover"`, the part that is kept. */
  crop?: Crop | FocalPoint | "attention" | "entropy";
  format?: "keep" | "jpeg" | "png" | "webp" | "avif" | "gif" | "jxl";
  /** 1 to 100. Default: 80, in AVIF 60; a WebP of unscaled artwork is lossless. */
  quality?: number;
  frames?: "first" | "all";
  background?: string;
  blur?: number;
  grayscale?: boolean;
  cornerRadius?: number;
  /** The fields of the EXIF data that the result keeps. Default: none. */
  metadata?: Metadata[];
}

export type Metadata =
  | "dateTimeOriginal" | "make" | "model" | "lensModel" | "exposureTime" | "fNumber" | "iso" | "focalLength"
  | "focalLengthIn35mm" | "artist" | "copyright" | "gps";

/** The properties that an image must have. A load of another image is rejected with the kind `unwanted`. */
export interface Want {
  minWidth?: number;
  minHeight?: number;
  maxWidth?: number;
  maxHeight?: number;
  /** Of width x height, without frames. */
  maxPixels?: number;
  maxFrames?: number;
  maxAspectRatio?: number;
  formats?: readonly Format[];
}

/** A file to make of an image. */
export interface OutputParams {
  transform?: Transform;
  /** The bytes of the image without its metadata; the transform, if any, has nothing but `metadata`. */
  strip?: boolean;
  /** The quality is lowered until the file fits. */
  maxBytes?: number;
  minQuality?: number;
  /** Default: "none" with `saveTo`, otherwise "path". */
  deliver?: "path" | "data" | "none";
  /** A relative path is resolved against the current directory of the program. */
  saveTo?: string | URL;
  /** The permissions of the saved file in octal, such as "640", whatever the umask is. */
  mode?: string;
}

/** The parameters of `load` except the URL. */
export interface LoadParams<D extends Deliver = Deliver> {
  key?: string;
  priority?: Priority;
  group?: string;
  slot?: string;
  headers?: HeaderFields;
  cache?: CacheMode;
  store?: "all" | "memory" | "disk" | "none";
  /** Default: "path". */
  deliver?: D;
  /** A relative path is resolved against the current directory of the program. */
  saveTo?: string | URL;
  transform?: Transform;
  placeholder?: boolean;
  /** Facts about the original. */
  facts?: readonly ("container" | "digest" | "exif" | "gps" | "perceptualHash")[];
  /** Images that may be decoded in one process with this one: none, those of the group, or all that have none. */
  isolate?: "image" | "tenant" | "none";
  validate?: "none" | "header" | "decode";
  events?: readonly LoadEventName[];
  timeoutMs?: number;
  deadlineMs?: number;
  retries?: number;
  maxBytes?: number;
  retryFailed?: boolean;
  response?: boolean;
  /** `sha256-` and 64 hexadecimal digits, or the base64 form of Subresource Integrity. */
  digest?: string;
  want?: Want;
  /** Files to make of the image, by name. It is then not delivered itself. */
  outputs?: { readonly [name: string]: OutputParams };
}

export interface LoadOptions<D extends Deliver = Deliver> extends LoadParams<D> {
  /** Aborting it cancels the load; the promise is rejected with its reason. */
  signal?: AbortSignal;
  /** With it, `events` defaults to all but `preview`. Its errors are reported by `process.emitWarning`; the load goes on. */
  onEvent?: (event: LoadEvent<Given<D>>) => void;
}

/** D, which is not inferred from here: a handler of any event must not decide what `deliver` is. */
type Given<D extends Deliver> = [D][D extends any ? 0 : never];

/** A URL of `loadAll` with parameters of its own, which go before those of the call. */
export interface LoadEntry<D extends Deliver = Deliver, ID = unknown> extends LoadParams<D> {
  url: string | URL;
  /** Yours: the outcome has it. It is not sent. */
  id?: ID;
}

export interface LoadAllOptions<D extends Deliver = Deliver> extends LoadOptions<D> {
  /** Maximum number of loads that are pending, or have ended and wait for the loop. Default: 1000. */
  maxInFlight?: number;
}

/** The parameters of `prefetch` except the URLs. */
export interface PrefetchParams {
  priority?: Priority;
  group?: string;
  headers?: HeaderFields;
  want?: Want;
  transform?: Transform;
  events?: readonly PrefetchEventName[];
}

export interface PrefetchOptions extends PrefetchParams {
  /** Aborting it cancels the prefetch; the promise is rejected with its reason. */
  signal?: AbortSignal;
  /** With it, `events` defaults to `progress`. */
  onEvent?: (event: PrefetchEvent) => void;
}

/** A URL of a `prefetch` with parameters of its own. */
export interface PrefetchItem {
  url: string | URL;
  key?: string;
  headers?: HeaderFields;
}

/** The parameters of `probe` except the URL. */
export interface ProbeParams {
  key?: string;
  priority?: Priority;
  group?: string;
  slot?: string;
  headers?: HeaderFields;
  cache?: CacheMode;
  timeoutMs?: number;
  deadlineMs?: number;
  retries?: number;
  retryFailed?: boolean;
}

export interface ProbeOptions extends ProbeParams {
  /** Aborting it cancels the probe; the promise is rejected with its reason. */
  signal?: AbortSignal;
}

/** A regular file: a path, a path below a folder that may come from a stranger, or a descriptor of a process. */
export type HostFile =
  | { path: string | URL; root?: undefined }
  | { root: string | URL; path: string }
  | { fd: number; pid?: number };

/** An image of your own, and what to tell and make of it. `data` is bytes or base64. */
export type ProcessParams =
  & ({ file: HostFile; data?: undefined } | { data: string | Uint8Array; file?: undefined })
  & {
    priority?: Priority;
    group?: string;
    slot?: string;
    deadlineMs?: number;
    maxBytes?: number;
    want?: Want;
    validate?: "header" | "decode";
    placeholder?: boolean;
    facts?: readonly ("container" | "digest" | "exif" | "gps" | "perceptualHash")[];
    isolate?: "image" | "tenant" | "none";
    outputs?: { readonly [name: string]: OutputParams };
  };

/** The loads and prefetches of a request: exactly one member. A `url` is compared with the one that was sent, letter by letter. */
export type Target = { url: string | URL } | { group: string } | { slot: string };
export type CancelParams = Target | { all: true };
export type PrioritizeParams = Target & { priority: Priority };
export type QueryParams =
  & ({ url: string | URL; key?: undefined; file?: undefined } | { key: string; url?: undefined; file?: undefined } | { file: HostFile; url?: undefined; key?: undefined })
  & { transform?: Transform };

/** An image of your own: its URL, key or both, and a file or its bytes. `data` is bytes or base64. */
export type StoreParams =
  & ({ url: string | URL; key?: string } | { url?: string | URL; key: string })
  & ({ path: string | URL; data?: undefined } | { data: string | Uint8Array; path?: undefined })
  & { deliver?: "path" | "none" };

/** The tier, and at most one other member. */
export interface ClearParams {
  tier?: "memory" | "disk" | "all";
  url?: string | URL;
  key?: string;
  file?: HostFile;
  prefix?: string;
  host?: string;
  olderThanSeconds?: number;
  expired?: true;
  failures?: true;
}

/** `unused`: nobody reads the pixels through a mapping either, so that another image may get the memory. */
export type ReleaseParams = Image<"pixels"> | { path: string; unused?: boolean } | { all: true; unused?: boolean };

/** The options of the worker that `configure` can change. Sizes are bytes, times are milliseconds. */
export interface Options {
  memoryLimit?: number;
  diskLimit?: number;
  maxAgeMs?: number;
  maxConcurrent?: number | "auto";
  maxPerHost?: number | "auto";
  maxConnectionsPerHost?: number;
  /** Requests per second and origin, such as "5/s"; null is no limit. */
  rate?: string | null;
  maxRedirects?: number;
  maxQueued?: number;
  order?: "fifo" | "lifo";
  timeoutMs?: number;
  connectTimeoutMs?: number;
  minRate?: number;
  deadlineMs?: number;
  retries?: number;
  failedTtlMs?: number;
  maxBytes?: number;
  maxPixels?: number;
  decodeTimeoutMs?: number;
  /** Percent. */
  minFree?: number;
  verify?: "random" | "always" | "never";
  resolver?: "c-ares" | "system";
  network?: "any" | "public";
  /** Null takes the proxy from the environment; "" connects directly. */
  proxy?: string | null;
  userAgent?: string;
  /** Lines such as "Accept-Language: en". */
  header?: readonly string[];
  insecure?: boolean;
  keyIgnoreQuery?: readonly string[];
  events?: readonly LoadEventName[];
  eof?: "drain" | "cancel";
  exitStatus?: boolean;
  logLevel?: "error" | "warning" | "info" | "debug";
  logFormat?: "text" | "json";
}

export interface InitializeParams {
  protocolVersion?: number;
  client?: { name?: string; version?: string };
  options?: Options;
  /** Whether the result contains `formats` and `sandbox`. This starts a decoder. */
  formats?: boolean;
}

/** The options that are fixed from the start of the worker. */
export interface StartOptions {
  cacheDir?: string;
  cacheNamespace?: string;
  readOnlyCache?: readonly string[];
  maxLine?: number;
  decoders?: number;
  /** Images that a decoder process decodes before it ends; 1 by default. */
  decoderLifetime?: number;
  /** Maximum bytes of memory of a decoder process; 2 GiB by default. */
  decodeMemory?: number;
  cookies?: string;
  /** The folder below which files of `process` and `store` must be. */
  files?: string;
  robots?: "obey" | "ignore";
  metricsFile?: string;
  /** A `%p` becomes the process ID, so that a restarted worker keeps the trace of the one before. */
  trace?: string;
  traceLimit?: number;
}

/** All options of the worker (`imageworker --help`), and the settings of this client. */
export interface Settings extends Omit<Options, "rate" | "proxy">, StartOptions {
  /** Requests per second and origin, such as "5/s". */
  rate?: string;
  /** "" connects directly. Default: the proxy of the environment. */
  proxy?: string;
  /** Further flags, as they are on the command line, such as ["--max-per-host=8"]. */
  arguments?: readonly string[];
  /** Default: $IMAGEWORKER, else this package's release build, else `imageworker` on the PATH. */
  binary?: string;
  /** Is called with the outcomes of requests that were sent by `notify`. */
  onEvent?: (event: WorkerEvent) => void;
  /** Is called with each line of the worker's log, and with problems of the process. */
  onLog?: (line: string) => void;
  /** Is called at each unexpected end, with the URLs of the loads that were `lost`. */
  onExit?: (end: WorkerExited | IncompatibleWorkerError) => void;
  /**
   * Maximum number of restarts in a row without an answer in between. After that, calls fail at once;
   * once `longestPauseMs` have passed since the last death, one call tries again. 0 never restarts. Default: 5.
   */
  maxRestarts?: number;
  /** The pause before a restart is 100 ms, and doubles up to this. Default: 10,000. */
  longestPauseMs?: number;
}

// Results

export interface InitializeResult {
  server: { name: string; version: string };
  protocolVersion: number;
  methods: Method[];
  events: EventName[];
  formats?: { decode: Format[]; encode: Format[]; libraries: Record<string, string> };
  /** The active restrictions of the decoders. */
  sandbox?: string[];
  limits: Record<string, number>;
  cache: { directory: string; namespace: string };
}

/** Decoded pixels in a file to map: 8-bit sRGB, rows of `stride` bytes, straight alpha. They are yours until `release`. */
export interface Pixels {
  path: string;
  offset: number;
  width: number;
  height: number;
  stride: number;
  /** 1 grey, 3 R G B, 4 R G B A. */
  channels: 1 | 3 | 4;
  bytes: number;
}

export interface HTTPResponse {
  status: number;
  /** Names in lower case. `set-cookie` is a list. */
  headers: Record<string, string | string[]>;
}

/** The members of every image. */
export interface ImageFacts {
  /** As it was sent; a `data:` URL up to its comma. */
  url: string;
  key: string;
  cache: "miss" | "file" | "memory" | "disk" | "revalidated" | "stale";
  bytes: number;
  mediaType: string;
  format?: Format;
  width?: number;
  height?: number;
  /** Until when the image is fresh, in RFC 3339; in the past if it is stale. */
  expiresAt?: string;
  /** False if the disk cache was to store the image and could not. */
  kept: boolean;
  /** True if a decode found that the original is damaged. The decoded part is as in browsers. */
  damaged?: true;
  /** High dynamic range that a decode found in the original. */
  hdr?: "pq" | "hlg" | "gainMap";
  finalURL?: string;
  /** If over 1. */
  frames?: number;
  /** The EXIF value, if not 1. */
  orientation?: number;
  /** With `orientation`: the size after it is applied, as browsers show the image. */
  upright?: Size;
  response?: HTTPResponse;
  /** If over 1. */
  attempts?: number;
  placeholder?: { thumbhash: string; color: string };
  /** `sha256-` and 64 hexadecimal digits. */
  digest?: string;
  /** 16 hexadecimal digits. */
  perceptualHash?: string;
  container?: Container;
  exif?: EXIF;
  /** If the image has it. */
  gps?: Position;
  /** With `outputs`: the files, by name. */
  outputs?: { [name: string]: OutputFile };
  source?: {
    bytes: number;
    format: Format;
    width?: number;
    height?: number;
    frames?: number;
    orientation?: number;
    upright?: Size;
  };
  timing?: Timing;
}

/** In pixels. */
export interface Size {
  width: number;
  height: number;
}

/** What the structure of the file tells. A member that it does not tell for certain is left out. */
export interface Container {
  hasAlpha?: boolean;
  /** The description of the ICC profile, or a name such as sRGB, Display P3 and gray. */
  colorSpace?: string;
  bitDepth?: number;
  hasGPS?: boolean;
  c2pa?: boolean;
}

/** Fields of the EXIF data. */
export interface EXIF {
  orientation?: number;
  dateTimeOriginal?: string;
  make?: string;
  model?: string;
  lensModel?: string;
  /** Seconds. */
  exposureTime?: number;
  fNumber?: number;
  iso?: number;
  /** Millimetres. */
  focalLength?: number;
  focalLengthIn35mm?: number;
  artist?: string;
  copyright?: string;
}

/** The position of the camera, in degrees and metres. */
export interface Position {
  latitude: number;
  longitude: number;
  altitude?: number;
}

/** `queuedMs`, `firstByteMs` and `totalMs` are times since the request. The others are the phases of the load, which add up to `totalMs`. */
export interface Timing {
  queuedMs?: number;
  lookupMs?: number;
  waitMs?: number;
  dnsMs?: number;
  connectMs?: number;
  tlsMs?: number;
  requestMs?: number;
  bodyMs?: number;
  storeMs?: number;
  decodeWaitMs?: number;
  decodeMs?: number;
  deliverMs?: number;
  firstByteMs?: number;
  totalMs: number;
}

/** The members of an image by `deliver`. */
export interface Delivered {
  /** `path` is a file whose bytes never change and that stays for at least 60 seconds. */
  path: { path: string; data?: undefined; pixels?: undefined };
  /** `data` is base64. */
  data: { data: string; path?: undefined; pixels?: undefined };
  pixels: { pixels: Pixels; path?: undefined; data?: undefined };
  none: { path?: undefined; data?: undefined; pixels?: undefined };
}

/** A loaded image, as the worker sent it: `Image<"path">` has a `path`, and so on. */
export type Image<D extends Deliver = Deliver> = ImageFacts & Delivered[D];

/** The image that `store` put into the cache. */
export type StoredImage = Omit<ImageFacts, "url"> & { url?: string; path: string };

/** An entry of `loadAll` with its image or its error. `index` counts the entries from 0; `id` is the entry's own. */
export type Outcome<D extends Deliver = Deliver, ID = unknown> = { url: string; id: ID; index: number } & (
  | { image: Image<D>; error?: undefined }
  | { error: ImageWorkerError; image?: undefined }
);

export interface PrefetchResult {
  total: number;
  downloaded: number;
  cached: number;
  failed: number;
  cancelled: number;
  bytes: number;
  /** The first 100. */
  errors: { url: string; kind: ErrorKind; message: string }[];
}

export interface CancelResult {
  cancelled: number;
}

export interface PrioritizeResult {
  changed: number;
}

export interface PauseResult {
  paused: boolean;
}

export interface ClearResult {
  removed: number;
  bytes: number;
}

export interface ReleaseResult {
  released: number;
}

/** A trace that has been started or stopped. See examples/operating/tracing.md. */
export interface TraceResult {
  path: string;
  /** The maximum size of the file in bytes, after `startTrace`. */
  limit?: number;
  /** The number of events that were written, after `stopTrace`; so are the members below. */
  events?: number;
  bytes?: number;
  /** The number of records that came too fast to be written. */
  dropped?: number;
  /** Whether the trace ended at its limit, before it was stopped. */
  full?: boolean;
}

/** The properties of an image, from the cache or from the first bytes of its file. */
/** A file made of an image. */
export interface OutputFile {
  bytes: number;
  mediaType: string;
  format: Format;
  width: number;
  height: number;
  /** If over 1. */
  frames?: number;
  /** With `strip`, if not 1. */
  orientation?: number;
  upright?: Size;
  /** With `maxBytes`: that of the file, if its format has one. */
  quality?: number;
  path?: string;
  /** Base64. */
  data?: string;
}

/** An image of your own, and the files made of it. */
export interface ProcessResult {
  bytes: number;
  mediaType: string;
  format: Format;
  /** As stored, before orientation. */
  width?: number;
  height?: number;
  /** If over 1. */
  frames?: number;
  /** The EXIF value, if not 1. */
  orientation?: number;
  /** With `orientation`. */
  upright?: Size;
  placeholder?: { thumbhash: string; color: string };
  digest?: string;
  perceptualHash?: string;
  container?: Container;
  exif?: EXIF;
  gps?: Position;
  damaged?: true;
  hdr?: "pq" | "hlg" | "gainMap";
  outputs?: { [name: string]: OutputFile };
  timing: NonNullable<Image["timing"]>;
}

export interface ProbeResult {
  url: string;
  key: string;
  cache: "miss" | "memory" | "disk" | "revalidated" | "stale";
  /** Of the file, if the server declared it. */
  bytes?: number;
  /** Bytes that had arrived when the header of the image was complete; missing if the image is in the cache. */
  received?: number;
  mediaType: string;
  format?: Format;
  width?: number;
  height?: number;
  frames?: number;
  orientation?: number;
  upright?: Size;
  finalURL?: string;
  etag?: string;
  lastModified?: string;
  attempts?: number;
  timing: NonNullable<Image["timing"]>;
}

/** What the cache knows of an image. Times are RFC 3339 in UTC. */
export interface QueryResult {
  memory: boolean;
  disk: boolean;
  fresh: boolean;
  path?: string;
  bytes?: number;
  storedAt?: string;
  expiresAt?: string;
  usedAt?: string;
  uses?: number;
  etag?: string;
  directory?: string;
  variants?: number;
  varying?: string[];
  transforms?: string[];
  failure?: ErrorKind;
  failedUntil?: string;
  lease?: { pid: number };
  reason: string;
}

export interface OriginStats {
  origin: string;
  active: number;
  waiting: number;
  window: number;
  health: "healthy" | "limited" | "suspended" | "probing" | "down";
  heldUntil?: string;
  reason?:
    | "retryAfter" | "unavailable" | "unreachable" | "unresponsive" | "rate" | "resolving" | "robots" | "retry" | "otherWorker"
    | "perHostLimit" | "concurrencyLimit" | "paused";
}

export interface ResolverStats {
  kind: "c-ares" | "system";
  names?: number;
  waiting?: number;
  inFlight?: number;
  window?: number;
  lookups?: number;
  queries?: number;
  unanswered?: number;
}

/** Counters since the start of the worker. See `stats` in protocol/reference.md. */
export interface StatsResult {
  uptimeMs: number;
  requests: { received: number; succeeded: number; failed: number; cancelled: number };
  queue: { waiting: Record<Priority, number>; active: number; window: number; paused: boolean };
  origins: OriginStats[];
  resolver: ResolverStats;
  transfers: { started: number; succeeded: number; failed: number; bytes: number };
  cache: { memoryHits: number; diskHits: number; revalidated: number; stale: number; misses: number; bytesSaved: number };
  failures: FailureStats[];
  memory: { entries: number; bytes: number; limit: number; evicted: number };
  disk: DiskStats;
  decoders: { running: number; decoded: number; failed: number; crashed: number; timedOut: number; sandbox: string[] };
  pixels: { regions: number; bytes: number };
  rssBytes: number;
}

/** The metrics of a worker, as OpenMetrics. */
export interface MetricsResult {
  contentType: string;
  text: string;
}

/** The failed loads of a kind; `url` has no query. `hint` says what to do if many loads fail with it. */
export interface FailureStats {
  kind: ErrorKind;
  count: number;
  latest: { url: string; message: string; status?: number; phase?: "connect" | "firstByte" | "idle" | "slow" | "deadline"; time: string };
  hint?: string;
}

export interface DiskStats {
  entries: number;
  bytes: number;
  limit: number;
  evicted: number;
  evictedFor: { limit: number; freeSpace: number; diskFull: number };
}

/** The parameters and the result of each method, for `call` and `notify`. */
export interface Methods {
  initialize: { params: InitializeParams; result: InitializeResult };
  load: { params: LoadParams & { url: string | URL }; result: Image };
  prefetch: { params: PrefetchParams & { urls: readonly (string | URL | PrefetchItem)[] }; result: PrefetchResult };
  probe: { params: ProbeParams & { url: string | URL }; result: ProbeResult };
  process: { params: ProcessParams; result: ProcessResult };
  cancel: { params: CancelParams; result: CancelResult };
  prioritize: { params: PrioritizeParams; result: PrioritizeResult };
  pause: { params: {}; result: PauseResult };
  resume: { params: {}; result: PauseResult };
  query: { params: QueryParams; result: QueryResult };
  store: { params: StoreParams; result: StoredImage };
  clear: { params: ClearParams; result: ClearResult };
  release: { params: { path: string; unused?: boolean } | { all: true; unused?: boolean }; result: ReleaseResult };
  stats: { params: {}; result: StatsResult };
  metrics: { params: {}; result: MetricsResult };
  configure: { params: Options; result: Required<Options> };
  trace: { params: { action: "start"; path: string; limit?: number } | { action: "stop" }; result: TraceResult };
  shutdown: { params: { mode?: "drain" | "cancel" }; result: {} };
}

// Events. Switch on `name`.

/** `id` is the client's own number of the request. */
export interface StartedEvent {
  name: "started";
  params: { id?: number; url: string; attempt: number };
}

export interface ProgressEvent {
  name: "progress";
  /** `total` is missing if the server does not say it. */
  params: { id?: number; url: string; received: number; total?: number };
}

export interface RetryingEvent {
  name: "retrying";
  /** `attempt` is the one to come. */
  params: { id?: number; url: string; attempt: number; delayMs: number; kind: ErrorKind };
}

/** With `cache: "refresh"`: the cached image, before it is revalidated. */
export interface CachedEvent<D extends Deliver = Deliver> {
  name: "cached";
  params: { id?: number } & Image<D>;
}

/** A part of a progressive JPEG, in a file that stays for 60 seconds. */
export interface PreviewEvent {
  name: "preview";
  params: { id?: number; url: string; path: string; width: number; height: number; scan: number };
}

export interface PrefetchProgressEvent {
  name: "progress";
  /** Items. */
  params: { id?: number; done: number; total: number; bytes: number };
}

export interface CompletedEvent<R = Image> {
  name: "completed";
  params: { id?: number } & R;
}

export interface FailedEvent {
  name: "failed";
  params: { id?: number; url?: string; error: { code: number; message: string; data: ErrorData } };
}

/** An event before the result of a load. */
export type LoadEvent<D extends Deliver = Deliver> = StartedEvent | ProgressEvent | RetryingEvent | CachedEvent<D> | PreviewEvent;

/** An event before the result of a prefetch. `completed` and `failed` are of one item. */
export type PrefetchEvent = PrefetchProgressEvent | CompletedEvent | FailedEvent;

/** An event of a request that was sent by `notify`. `completed` has the result of its method. */
export type WorkerEvent =
  | LoadEvent
  | PrefetchProgressEvent
  | CompletedEvent<{ [M in Method]: Methods[M]["result"] }[Method]>
  | FailedEvent;

// Errors

/** The members that an error may have. */
export interface ErrorData {
  kind: ErrorKind;
  url?: string;
  retryable: boolean;
  attempts?: number;
  status?: number;
  phase?: "connect" | "firstByte" | "idle" | "slow" | "deadline";
  retryAfterMs?: number;
  /** Processor time and elapsed time of a decode that ended with decodeTimeout. */
  cpuMs?: number;
  wallMs?: number;
  originDown?: true;
  /** The kind of the remembered failure, of recentlyFailed. */
  failure?: ErrorKind;
  /** The rule of robots.txt or the header field that does not allow the load. */
  rule?: string;
  member?: string;
  /** The output at fault, by its name in `outputs`. */
  output?: string;
  /** The property of `want` that the image does not have. */
  wanted?: keyof Want;
  format?: Format;
  /** The media type of content that is not an image, or of a raw photo (DNG). */
  detected?: string;
  width?: number;
  height?: number;
  frames?: number;
  maxSide?: number;
  bytes?: number;
  /** The limit that was exceeded: pixels, bytes, or the value of `wanted`. */
  limit?: number;
  id?: unknown;
  supported?: number[];
  response?: HTTPResponse;
  timing?: Timing;
}

/** Kinds of the errors that this client makes. */
export type ClientErrorKind = "workerExited" | "closed" | "incompatible";

/**
 * An error of the worker or of this client. Its class says what to do; `kind` is the exact reason. The table in README.md has
 * the class of each kind.
 */
export class ImageWorkerError extends Error {
  constructor(code: number | undefined, message: string, data: object);
  /** The number of the protocol; undefined for errors that this client makes. */
  readonly code: number | undefined;
  readonly kind: ErrorKind | ClientErrorKind;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  readonly url?: string;
  readonly data: Omit<ErrorData, "kind"> & { kind: ErrorKind | ClientErrorKind };
}

/** The request is wrong. Correct the program. */
export class RequestError extends ImageWorkerError {
  readonly kind: "parseError" | "invalidRequest" | "methodNotFound" | "invalidParams";
}

/** A parameter is missing, unknown, of the wrong type or out of range. */
export class InvalidParamsError extends RequestError {
  readonly kind: "invalidParams";
  /** The parameter, as a path such as `transform.width`. */
  readonly member?: string;
}

/** The worker failed, not the request. Report it, with the log. */
export class InternalError extends ImageWorkerError {
  readonly kind: "internal";
}

/** Another request cancelled this one: `cancel`, a new URL in its slot, or `close`. */
export class CancelledByRequest extends ImageWorkerError {
  readonly kind: "cancelled";
}

/** The image could not be transferred. */
export class NetworkError extends ImageWorkerError {
  readonly kind: TransportErrorKind | PolicyErrorKind | "timeout" | "http";
}

type TransportErrorKind = "resolve" | "connect" | "tls" | "truncated" | "network";
type PolicyErrorKind = "redirects" | "tooLarge" | "blockedAddress" | "recentlyFailed" | "robots";

/** The connection failed: the name does not resolve, no connection, TLS, or a connection that broke. */
export class TransportError extends NetworkError {
  readonly kind: TransportErrorKind;
}

/** The server, or the whole load, took too long. */
export class TimeoutError extends NetworkError {
  readonly kind: "timeout";
  /** `client`: the deadline was over, and the worker did not say so. */
  readonly phase: "connect" | "firstByte" | "idle" | "slow" | "deadline" | "client";
}

/** The server answered with a status other than 2xx. */
export class HTTPStatusError extends NetworkError {
  readonly kind: "http";
  readonly status: number;
  /** The header fields, if the load asked for them with `response: true`. */
  readonly response?: HTTPResponse;
}

/** An option of the worker refused the transfer: `maxRedirects`, `maxBytes`, `network` or `failedTtlMs`. */
export class PolicyError extends NetworkError {
  readonly kind: PolicyErrorKind;
}

/** The image is not in the cache, or a file cannot be read or written. */
export class CacheError extends ImageWorkerError {
  readonly kind: "notCached" | "diskFull" | "io";
}

/** The content is not an image, cannot be decoded, or is not what `digest` says. */
export class ContentError extends ImageWorkerError {
  readonly kind:
    | "notAnImage" | "unsupportedFormat" | "corrupt" | "tooManyPixels" | "decoderCrashed" | "decodeTimeout"
    | "digestMismatch" | "unwanted";
}

/** The worker takes no more requests, or none at present. */
export class LifecycleError extends ImageWorkerError {
  readonly kind: "shuttingDown" | "overloaded" | ClientErrorKind;
}

/** The worker ended before it answered, or could not be started. It is retryable unless no other worker will be started. */
export class WorkerExited extends LifecycleError {
  constructor(
    facts: { exitStatus: number | string | null; log: string[]; retryable: boolean; url?: string },
    lost?: string[],
  );
  readonly kind: "workerExited";
  /** The URLs of all loads and prefetches that ended with it. */
  readonly lost: string[];
  /** The exit status, or the name of the signal; null if the worker did not start. */
  readonly exitStatus: number | string | null;
  /** The last lines of the worker's log. */
  readonly log: string[];
}

/** The worker was closed by `close`, so it takes no more calls. */
export class ClosedError extends LifecycleError {
  constructor();
  readonly kind: "closed";
}

/** The worker does not speak the protocol of this client. Use a client and a worker of one release. */
export class IncompatibleWorkerError extends LifecycleError {
  constructor(facts: { reason: string; url?: string });
  readonly kind: "incompatible";
}

// The worker

/**
 * The worker to start: the argument, else $IMAGEWORKER, else that of the npm package, else the source tree's release build, else
 * $PATH. If there is none, it throws.
 */
export function findWorker(binary?: string): string;

export interface CallOptions {
  /** Aborting it cancels the request; the promise is rejected with its reason. */
  signal?: AbortSignal;
  onEvent?: (event: WorkerEvent) => void;
}

export interface CloseOptions {
  /** Finish the pending calls instead of cancelling them. Default: false. */
  drain?: boolean;
  /** The time before SIGTERM, and again before SIGKILL. Default: 5,000, with `drain` unlimited. */
  graceMs?: number;
}

/** One worker, and the next when it dies. It starts at once; while no call is pending, it does not keep the program alive. */
export class ImageWorker {
  /** Throws a TypeError if a setting is unknown or of the wrong type. */
  constructor(settings?: Settings);
  readonly pid: number | undefined;

  /**
   * The result of `initialize`, with the worker's version and limits. It is rejected if the worker is missing, ends or
   * does not fit. You need not wait for it. It is of the worker that runs now, or that ran last.
   */
  readonly ready: Promise<InitializeResult>;

  /** Loads one image. */
  load<D extends Deliver = "path">(url: string | URL, options?: LoadOptions<D>): Promise<Image<D>>;

  /**
   * Loads an image from a file of yours, such as a photo, and caches the results of transforms, but not the file. A result
   * serves only the version of the file that it was made from. A descriptor needs a `key`.
   */
  loadFile<D extends Deliver = "path">(
    file: string | URL | HostFile,
    options?: Omit<LoadOptions<D>, "onEvent" | "events" | "headers" | "timeoutMs" | "retries" | "response">,
  ): Promise<Image<D>>;

  /** Loads one image and yields its events; the last is `completed` with the image. Leaving the loop early cancels the load. */
  loadEvents<D extends Deliver = "path">(
    url: string | URL,
    options?: Omit<LoadOptions<D>, "onEvent">,
  ): AsyncGenerator<LoadEvent<D> | CompletedEvent<Image<D>>, void, undefined>;

  /**
   * Loads many images and yields an outcome for each, in the order in which the loads end. Entries are read when there is room
   * for them, so a million of them take no more memory than a thousand. Leaving the loop early cancels the pending loads.
   */
  loadAll<D extends Deliver = "path", ID = undefined>(
    entries: Iterable<string | URL | LoadEntry<D, ID>> | AsyncIterable<string | URL | LoadEntry<D, ID>>,
    options?: LoadAllOptions<D>,
  ): AsyncGenerator<Outcome<D, ID>, void, undefined>;

  /** Loads images into the cache. */
  prefetch(urls: Iterable<string | URL | PrefetchItem>, options?: PrefetchOptions): Promise<PrefetchResult>;

  /** The pixels of a load with `deliver: "pixels"`, copied into a Buffer and released: Node has no way to map memory. */
  takePixels(image: Image<"pixels">): Promise<Uint8Array>;

  /** Cancels loads and prefetches. Their promises are rejected with CancelledByRequest. */
  cancel(target: CancelParams): Promise<CancelResult>;

  /** Changes the priority of loads that wait. */
  prioritize(target: PrioritizeParams): Promise<PrioritizeResult>;

  /** Starts no more transfers until `resume`, or the end of the worker. Cached images are served. */
  pause(): Promise<PauseResult>;
  resume(): Promise<PauseResult>;

  /** The format and size of an image, from the cache or from the first bytes of its file. */
  probe(url: string | URL, options?: ProbeOptions): Promise<ProbeResult>;

  /** Checks an image of your own, tells facts about it, and makes files of it. Nothing is stored. */
  process(image: ProcessParams, options?: { signal?: AbortSignal }): Promise<ProcessResult>;

  /** What the cache knows of an image. Nothing is transferred. */
  query(target: QueryParams): Promise<QueryResult>;

  /** Puts an image of your own into the cache. */
  store(image: StoreParams & { deliver: "none" }): Promise<Omit<StoredImage, "path">>;
  store(image: StoreParams): Promise<StoredImage>;

  /** Removes images from the cache: all of them, or those that match the filter. */
  clear(filter?: ClearParams): Promise<ClearResult>;

  /** Gives pixels back to the worker. `takePixels` does that. */
  release(target: ReleaseParams): Promise<ReleaseResult>;

  /** Counters since the start of the worker. */
  stats(): Promise<StatsResult>;

  /** The metrics of the worker, to answer a scraper with. */
  metrics(): Promise<MetricsResult>;

  /** Changes options, also for the workers that are started later, and returns all values. */
  configure(options?: Options): Promise<Required<Options>>;

  /**
   * Starts a timeline of all loads in a file, which Perfetto can open. `limit` is its maximum size in bytes. A `%p` in the
   * path becomes the process ID of the worker. A trace ends with its worker.
   */
  startTrace(path: string, options?: { limit?: number }): Promise<TraceResult>;

  /** Completes the file of the trace. */
  stopTrace(): Promise<TraceResult>;

  /** Any method of the protocol, by its name. */
  call<M extends Method>(
    method: M,
    ...rest: {} extends Methods[M]["params"]
      ? [params?: Methods[M]["params"], options?: CallOptions]
      : [params: Methods[M]["params"], options?: CallOptions]
  ): Promise<Methods[M]["result"]>;

  /** Sends a request without an answer; its outcome is an event of `onEvent`. It is lost if no worker runs. */
  notify<M extends Method>(
    method: M,
    ...rest: {} extends Methods[M]["params"] ? [params?: Methods[M]["params"]] : [params: Methods[M]["params"]]
  ): void;

  /** Ends the worker. Pending calls are cancelled unless `drain`; further calls fail with ClosedError. */
  close(options?: CloseOptions): Promise<void>;

  /** `close`, for `await using worker = new ImageWorker()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

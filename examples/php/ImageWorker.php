<?php

declare(strict_types=1);

/**
 * ImageWorker for PHP: one file, without dependencies, for PHP 8.2 or newer on the command line and under php-fpm.
 *
 *     $worker = new ImageWorker\ImageWorker(maxPerHost: 8);
 *     $image = $worker->load('https://example.com/cat.jpg', transform: ['width' => 256]);
 *     echo $image->path, $image->width, $image->height;
 *     $worker->close();
 *
 * - Calls are synchronous. loadAll and submit have several requests under way at once.
 * - The worker starts at the first call, and ends with the ImageWorker or the request of php-fpm.
 * - If the worker dies, pending calls fail with WorkerExited. The next call starts another worker, after a pause.
 * - A forked child has nothing of the parent's worker, and starts its own at its first call.
 *
 * The protocol is in protocol/README.md.
 */

namespace ImageWorker;

// Errors

/**
 * An error of the worker or of this client. getCode() is the number of the protocol, 0 for errors of this client. `data` has
 * the members of the protocol's error.
 */
class ImageWorkerError extends \RuntimeException
{
    public readonly string $kind;
    public readonly bool $retryable;
    public readonly ?string $url;

    /** @param array<string, mixed> $data */
    final public function __construct(string $message, public readonly array $data, int $code = 0)
    {
        parent::__construct($message, $code);
        $this->kind = $data['kind'] ?? 'internal';
        $this->retryable = $data['retryable'] ?? false;
        $this->url = $data['url'] ?? null;
    }

    /** The error of an answer, in the class of its kind; of an unknown kind, in the class of its code. */
    public static function of(array $error): self
    {
        $code = $error['code'] ?? -32603;
        $data = $error['data'] ?? [];
        $class = self::CLASSES[$data['kind'] ?? 'internal'] ?? self::FAMILIES[intdiv($code, 1000)] ?? RequestError::class;
        return new $class($error['message'] ?? 'the answer cannot be read', $data, $code);
    }

    /** The same error for the call with this URL. */
    public function for(?string $url): static
    {
        return new static($this->getMessage(), ['url' => $url] + $this->data, $this->getCode());
    }

    public const CLASSES = [
        'parseError' => RequestError::class, 'invalidRequest' => RequestError::class, 'methodNotFound' => RequestError::class,
        'invalidParams' => InvalidParamsError::class, 'internal' => InternalError::class,
        'cancelled' => CancelledByRequest::class,
        'resolve' => TransportError::class, 'connect' => TransportError::class, 'tls' => TransportError::class,
        'truncated' => TransportError::class, 'network' => TransportError::class, 'timeout' => TimeoutError::class,
        'http' => HTTPStatusError::class, 'redirects' => PolicyError::class, 'tooLarge' => PolicyError::class,
        'blockedAddress' => PolicyError::class, 'recentlyFailed' => PolicyError::class, 'robots' => PolicyError::class,
        'notCached' => CacheError::class, 'diskFull' => CacheError::class, 'io' => CacheError::class,
        'notAnImage' => ContentError::class, 'unsupportedFormat' => ContentError::class, 'corrupt' => ContentError::class,
        'tooManyPixels' => ContentError::class, 'decoderCrashed' => ContentError::class, 'decodeTimeout' => ContentError::class,
        'digestMismatch' => ContentError::class, 'unwanted' => ContentError::class,
        'shuttingDown' => LifecycleError::class, 'overloaded' => LifecycleError::class,
    ];
    private const FAMILIES = [
        2 => NetworkError::class, 3 => CacheError::class, 4 => ContentError::class, 5 => LifecycleError::class,
    ];
}

/** The request is wrong. Correct the program. */
class RequestError extends ImageWorkerError {}

/** A parameter is missing, unknown, of the wrong type or out of range: data['member']. */
class InvalidParamsError extends RequestError {}

/** The worker failed, not the request. */
class InternalError extends ImageWorkerError {}

/** `cancel`, another load in the same slot, or `close` cancelled the request. */
class CancelledByRequest extends ImageWorkerError {}

/** The image could not be transferred. */
class NetworkError extends ImageWorkerError {}

/** The connection failed. */
class TransportError extends NetworkError {}

/** A time limit was exceeded: data['phase']. The phase "client" is giveUpAfter. */
class TimeoutError extends NetworkError {}

/** The server answered with data['status'], which is not 2xx. */
class HTTPStatusError extends NetworkError {}

/** An option of the worker refused the transfer, or the same load failed a short while ago. */
class PolicyError extends NetworkError {}

/** The image is not in the cache, or a file cannot be read or written. */
class CacheError extends ImageWorkerError {}

/** The content is not a usable image. */
class ContentError extends ImageWorkerError {}

/** The worker takes no more requests, or none at present. */
class LifecycleError extends ImageWorkerError {}

/** The worker ended, or did not start: data has exitStatus, log, and lost, the URLs of all loads that ended with it. */
class WorkerExited extends LifecycleError {}

/** `close` or `shutdown` was called. */
class ClosedError extends LifecycleError {}

/** The worker does not speak the protocol of this client. */
class IncompatibleWorkerError extends LifecycleError {}

// Requests

/** An event of a request. */
final readonly class Event
{
    public function __construct(public string $name, public array $params) {}
}

/** The outcome of a load of loadAll: either image or error is null. */
final readonly class Outcome
{
    public function __construct(public string $url, public ?Image $image, public ?ImageWorkerError $error) {}
}

/** A request that has been sent. `id` is its id in the protocol, for cancel and prioritize. */
final class Call
{
    /** The message of the worker, or the error of this client. */
    public array|ImageWorkerError|null $outcome = null;
    public ?array $refusal = null;

    /** @param list<string> $urls */
    public function __construct(
        private readonly ImageWorker $worker, public readonly int $id, public readonly string $method,
        public readonly array $urls, public readonly ?\Closure $onEvent

    ) {}

    public function isDone(): bool
    {
        return $this->outcome !== null;
    }

    /** Waits for the result, at most so many seconds: then the request is cancelled, with TimeoutError. */
    public function value(?float $giveUpAfter = null): ?Result
    {
        $this->worker->wait($this, $giveUpAfter === null ? null : microtime(true) + $giveUpAfter);
        if ($this->outcome instanceof ImageWorkerError) {
            throw $this->outcome;
        }
        if (!isset($this->outcome['result'])) {
            throw ImageWorkerError::of($this->outcome['error'] ?? []);
        }
        $class = ImageWorker::RESULTS[$this->method];
        return $class === null ? null : $class::of($this->outcome['result']);
    }

    /** The worker answers with the error cancelled, unless the request is done. */
    public function cancel(): void
    {
        $this->worker->abandon($this);
    }
}

// The worker

/** One worker, and the next when it dies. */
final class ImageWorker
{
    public const VERSION = '0.1.0';
    public const PROTOCOL_VERSION = 1;

    /** Parameters of each method. */
    public const PARAMS = [
        'initialize' => ['protocolVersion', 'client', 'options', 'formats'],
        'load' => [
            'url', 'file', 'key', 'priority', 'group', 'slot', 'headers', 'cache', 'store', 'deliver', 'saveTo', 'validate',
            'events', 'timeoutMs', 'deadlineMs', 'retries', 'maxBytes', 'retryFailed', 'response', 'digest', 'want', 'transform',
            'placeholder', 'facts', 'isolate', 'outputs',
        ],
        'prefetch' => ['urls', 'priority', 'group', 'headers', 'want', 'transform', 'events'],
        'probe' => [
            'url', 'key', 'priority', 'group', 'slot', 'headers', 'cache', 'timeoutMs', 'deadlineMs', 'retries', 'retryFailed',
        ],
        'process' => [
            'file', 'data', 'priority', 'group', 'slot', 'deadlineMs', 'maxBytes', 'want', 'validate', 'placeholder', 'facts',
            'isolate', 'outputs',
        ],
        'cancel' => ['id', 'url', 'group', 'slot', 'all'],
        'prioritize' => ['id', 'url', 'group', 'slot', 'priority'],
        'pause' => [], 'resume' => [], 'stats' => [], 'metrics' => [],
        'query' => ['url', 'key', 'file', 'transform'],
        'store' => ['url', 'key', 'path', 'data', 'deliver'],
        'clear' => ['tier', 'url', 'key', 'file', 'prefix', 'host', 'olderThanSeconds', 'expired', 'failures'],
        'release' => ['path', 'all', 'unused'],
        'configure' => [
            'memoryLimit', 'diskLimit', 'maxAgeMs', 'maxConcurrent', 'maxPerHost', 'maxConnectionsPerHost', 'rate',
            'maxRedirects', 'maxQueued', 'order', 'timeoutMs', 'connectTimeoutMs', 'minRate', 'deadlineMs', 'retries',
            'failedTtlMs', 'maxBytes', 'maxPixels', 'decodeTimeoutMs', 'minFree', 'verify', 'resolver', 'network', 'proxy',
            'userAgent', 'header', 'insecure', 'keyIgnoreQuery', 'events', 'eof', 'exitStatus', 'logLevel', 'logFormat',
        ],
        'trace' => ['action', 'path', 'limit'],
        'shutdown' => ['mode'],
    ];

    public const RESULTS = [
        'initialize' => InitializeResult::class, 'load' => Image::class, 'prefetch' => PrefetchResult::class,
        'probe' => ProbeResult::class, 'process' => ProcessResult::class, 'cancel' => CancelResult::class,
        'prioritize' => PrioritizeResult::class, 'pause' => PauseResult::class, 'resume' => PauseResult::class,
        'query' => QueryResult::class, 'store' => Image::class, 'clear' => ClearResult::class, 'release' => ReleaseResult::class,
        'stats' => StatsResult::class, 'metrics' => MetricsResult::class, 'configure' => OptionsResult::class,
        'trace' => TraceResult::class, 'shutdown' => null,
    ];

    /** Members that are objects: an empty array, or one with the key 0, would be a list. */
    private const OBJECTS = ['client', 'options', 'headers', 'want', 'transform', 'file', 'outputs'];

    private const LATE = 10;

    /** Exit statuses after which a restart would fail again: an invalid option, an unusable cookie file or cache directory. */
    private const HOPELESS = [64, 66, 73];

    /** Signals. The extension pcntl, which has their names, is not there under php-fpm. */
    private const SIGTERM = 15;
    private const SIGKILL = 9;

    private array $settings;
    private array $flags = [];
    private array $configured = [];
    private mixed $deadlineMs;
    private bool $isClosed = false;
    private bool $hasRun = false;
    private int $deaths = 0;
    private float $diedAt = 0;
    private ?ImageWorkerError $failure = null;

    // One process. All of this begins anew with the next one.
    private int $owner;
    /** @var ?resource */
    private $process = null;
    /** @var array<int, resource> standard input, output and error */
    private array $pipes = [];
    /** The last answer of proc_get_status, which tells the exit status once (before PHP 8.3). */
    private array $status = ['pid' => 0];
    private int $lastID = 0;
    private int $askedID = 0;
    private int $maxLine = PHP_INT_MAX;
    private ?Call $greeting = null;
    /** @var array<int, Call> */
    private array $calls = [];
    /** @var list<array{Call, Event}> */
    private array $events = [];
    /** @var list<string> */
    private array $outgoing = [];
    private int $written = 0;
    private array $unread = [1 => '', 2 => ''];
    /** @var list<string> */
    private array $log = [];

    /**
     * Settings: binary, arguments, onLog, maxRestarts (5), longestPauseMs (10,000), and the options of the worker:
     * --cache-dir is cacheDir, --timeout 5s is timeoutMs: 5000.
     */
    public function __construct(mixed ...$settings)
    {
        $own = ['binary' => null, 'arguments' => [], 'onLog' => null, 'maxRestarts' => 5, 'longestPauseMs' => 10_000];
        $this->settings = array_intersect_key($settings, $own) + $own;
        foreach (array_diff_key($settings, $own) as $name => $value) {
            array_push($this->flags, ...self::flags((string) $name, $value));
        }
        array_push($this->flags, ...$this->settings['arguments']);
        $this->deadlineMs = $settings['deadlineMs'] ?? null;
        $this->owner = getmypid();
    }

    public function __destruct()
    {
        $this->close();
    }

    /** The result of initialize. Starts the worker if none runs. */
    public function ready(): InitializeResult
    {
        $this->run(null);
        return $this->greeting->value();
    }

    public function pid(): int
    {
        return $this->status['pid'];
    }

    // Requests

    /** Sends a request and does not wait: Call::value does. */
    public function submit(string $method, array $params = [], ?callable $onEvent = null, ?float $deadline = null): Call
    {
        $params = $this->prepare($method, $params, $onEvent !== null);
        $this->run($deadline);
        return $this->send($method, $params, $onEvent);
    }

    /**
     * Sends a request and waits for its result. The parameters may contain onEvent and giveUpAfter (seconds). The default is
     * the deadline of the request and LATE seconds more: a worker that is stopped answers nothing.
     */
    public function call(string $method, array $params = []): ?Result
    {
        $onEvent = $params['onEvent'] ?? null;
        $limit = $params['giveUpAfter'] ?? $this->lateAfter($method, $params);
        $deadline = $limit === null ? null : microtime(true) + $limit;
        unset($params['onEvent'], $params['giveUpAfter']);
        $call = $this->submit($method, $params, $onEvent, $deadline);
        return $call->value($deadline === null ? null : max($deadline - microtime(true), 0));
    }

    private function lateAfter(string $method, array $params): ?float
    {
        $given = $params['deadlineMs'] ?? $this->configured['deadlineMs'] ?? $this->deadlineMs;
        $has = in_array($method, ['load', 'probe', 'process'], true) && is_numeric($given) && $given > 0;
        return $has ? $given / 1000 + self::LATE : null;
    }

    public function load(string $url, mixed ...$params): Image
    {
        return $this->call('load', ['url' => $url] + $params);
    }

    /** Caches the results of transforms, but not the file: a path, or ['root' => ..., 'path' => ...]. */
    public function loadFile(string|\SplFileInfo|array $file, mixed ...$params): Image
    {
        return $this->call('load', ['file' => $file] + $params);
    }

    /**
     * Loads many images at once. Yields an Outcome for the key of each entry, in the order in which the loads end. An entry is a
     * URL, or an array with url and parameters of its own. If the loop is left, the pending loads are cancelled.
     *
     * @return \Generator<int|string, Outcome>
     */
    public function loadAll(iterable $entries, int $maxInFlight = 100, mixed ...$params): \Generator
    {
        $pending = [];
        $done = function () use (&$pending): \Generator {
            foreach ($pending as $number => [$key, $url, $call]) {
                if ($call->isDone()) {
                    unset($pending[$number]);
                    try {
                        yield $key => new Outcome($url, $call->value(), null);
                    } catch (ImageWorkerError $error) {
                        yield $key => new Outcome($url, null, $error);
                    }
                }
            }
        };
        try {
            foreach ($entries as $key => $entry) {
                $own = is_array($entry) ? $entry : ['url' => $entry];
                try {
                    $pending[] = [$key, (string) $own['url'], $this->submit('load', $own + $params)];
                } catch (RequestError $error) {
                    yield $key => new Outcome((string) $own['url'], null, $error);
                }
                yield from $done();
                while (count($pending) >= $maxInFlight) {
                    $this->poll(null);
                    yield from $done();
                }
            }
            while ($pending !== []) {
                $this->poll(null);
                yield from $done();
            }
        } finally {
            foreach ($pending as [, , $call]) {
                $call->cancel();
            }
        }
    }

    /** @param iterable<string|array> $urls */
    public function prefetch(iterable $urls, mixed ...$params): PrefetchResult
    {
        return $this->call('prefetch', ['urls' => is_array($urls) ? $urls : iterator_to_array($urls, false)] + $params);
    }

    public function probe(string $url, mixed ...$params): ProbeResult
    {
        return $this->call('probe', ['url' => $url] + $params);
    }

    /** @param mixed $file a path, an open file, ['root' => ..., 'path' => ...], ['fd' => ...], or null with data: (bytes) */
    public function process(mixed $file = null, mixed ...$params): ProcessResult
    {
        return $this->call('process', ['file' => $file] + $params);
    }

    public function cancel(mixed ...$target): CancelResult
    {
        return $this->call('cancel', $target);
    }

    public function prioritize(mixed ...$target): PrioritizeResult
    {
        return $this->call('prioritize', $target);
    }

    public function pause(): PauseResult
    {
        return $this->call('pause');
    }

    public function resume(): PauseResult
    {
        return $this->call('resume');
    }

    public function query(mixed ...$target): QueryResult
    {
        return $this->call('query', $target);
    }

    /** `data` are the bytes of the image. */
    public function store(mixed ...$content): Image
    {
        return $this->call('store', $content);
    }

    public function clear(mixed ...$filter): ClearResult
    {
        return $this->call('clear', $filter);
    }

    /** Takes an image with pixels, or path: or all: true. */
    public function release(?Image $image = null, mixed ...$target): ReleaseResult
    {
        return $this->call('release', ($image ? ['path' => $image->pixels->path] : []) + $target);
    }

    /** The pixels of a load with deliver: 'pixels', as bytes. They are released. */
    public function takePixels(Image $image): string
    {
        try {
            return file_get_contents($image->pixels->path, offset: $image->pixels->offset, length: $image->pixels->bytes);
        } finally {
            $this->release($image, unused: true);
        }
    }

    public function stats(): StatsResult
    {
        return $this->call('stats');
    }

    public function metrics(): MetricsResult
    {
        return $this->call('metrics');
    }

    /** Changes options. A worker that is started later gets them, too. */
    public function configure(mixed ...$options): OptionsResult
    {
        $values = $this->call('configure', $options);
        $this->configured = $options + $this->configured;
        return $values;
    }

    public function trace(mixed ...$params): TraceResult
    {
        return $this->call('trace', $params);
    }

    /** Finishes (drain) or cancels the accepted requests, and ends the worker. */
    public function shutdown(string $mode = 'drain'): void
    {
        $this->close($mode === 'drain');
    }

    /** Ends the worker: closes its input, waits `grace` seconds (drain: without a limit), sends SIGTERM, waits, sends SIGKILL. */
    public function close(bool $drain = false, ?float $grace = null): void
    {
        $this->isClosed = true;
        if ($this->process === null || $this->owner !== getmypid()) {
            return;
        }
        $this->tell('shutdown', ['mode' => $drain ? 'drain' : 'cancel']);
        $grace ??= $drain ? null : 5.0;
        foreach ([self::SIGTERM, self::SIGKILL] as $signal) {
            $deadline = $grace === null ? null : microtime(true) + $grace;
            while ($this->process !== null && ($deadline === null || microtime(true) < $deadline)) {
                if ($this->outgoing === [] && isset($this->pipes[0])) {
                    fclose($this->pipes[0]);
                    unset($this->pipes[0]);
                }
                $this->poll($deadline === null ? null : max($deadline - microtime(true), 0));
            }
            if ($this->process !== null) {
                proc_terminate($this->process, $signal);
            }
        }
        while ($this->process !== null) {
            $this->poll(null);
        }
    }

    // For Call, and for programs with a loop of their own

    /** Reads and writes once, and waits at most so many seconds for that. Then the handlers of events are called. */
    public function poll(?float $seconds): void
    {
        if ($this->process !== null && $this->owner === getmypid()) {
            $this->exchange($seconds);
        }
        while (($next = array_shift($this->events)) !== null) {
            ($next[0]->onEvent)($next[1]);
        }
    }

    public function wait(Call $call, ?float $deadline): void
    {
        if ($this->owner !== getmypid()) {
            $this->leaveToParent();
        }
        try {
            while (!$call->isDone()) {
                $left = $deadline === null ? null : $deadline - microtime(true);
                if ($left !== null && $left <= 0) {
                    $data = ['kind' => 'timeout', 'phase' => 'client', 'url' => $call->urls[0] ?? null];
                    throw new TimeoutError('no answer in time', $data);
                }
                $this->poll($left);
            }
        } finally {
            if (!$call->isDone() && $call !== $this->greeting) {
                $this->abandon($call);
            }
        }
    }

    /** The program does not wait for this call any more. */
    public function abandon(Call $call): void
    {
        if ($this->owner === getmypid() && ($this->calls[$call->id] ?? null) === $call) {
            unset($this->calls[$call->id]);
            $this->tell('cancel', ['id' => $call->id]);
            $this->exchange(0); // The next call may be far.
        }
    }

    // Lines

    private function prepare(string $method, array $params, bool $withEvents): array
    {
        $known = self::PARAMS[$method] ?? throw new \InvalidArgumentException("unknown method: $method");
        if ($unknown = array_diff(array_keys($params), $known)) {
            throw new \InvalidArgumentException("unknown parameter of $method: " . implode(', ', $unknown));
        }
        if ($withEvents && !array_key_exists('events', $params)) {
            $params['events'] = $method === 'load' ? ['started', 'progress', 'retrying', 'cached'] : ['progress'];
        }
        if ($method !== 'configure') {
            $params = array_filter($params, fn ($value) => $value !== null);
        }
        if (isset($params['file'])) {
            $params = self::withFile($params['file'], $params);
        }
        if (isset($params['data'])) {
            $params['data'] = base64_encode($params['data']);
        }
        foreach (['saveTo', 'path'] as $name) {
            if (isset($params[$name])) {
                $params[$name] = self::absolute($params[$name]);
            }
        }
        foreach (is_array($params['outputs'] ?? null) ? $params['outputs'] : [] as $name => $output) {
            if (isset($output['saveTo'])) {
                $params['outputs'][$name]['saveTo'] = self::absolute($output['saveTo']);
            }
        }
        return $params;
    }

    /** An open file is given by its path if it has one, and otherwise by its content: PHP does not tell its descriptor. */
    private static function withFile(mixed $file, array $params): array
    {
        if (is_resource($file)) {
            $path = stream_get_meta_data($file)['uri'] ?? '';
            [$there, $here] = [@stat($path), fstat($file)];
            if (!$there || !$here || [$there['dev'], $there['ino']] !== [$here['dev'], $here['ino']]) {
                unset($params['file']);
                return ['data' => stream_get_contents($file, offset: 0)] + $params;
            }
            fflush($file);
            $file = $path;
        }
        return ['file' => is_array($file) ? $file : ['path' => self::absolute((string) $file)]] + $params;
    }

    private static function absolute(string|\SplFileInfo $path): string
    {
        return str_starts_with((string) $path, '/') ? (string) $path : getcwd() . "/$path";
    }

    private function send(string $method, array $params, ?callable $onEvent): Call
    {
        $line = self::encode(['id' => ++$this->lastID, 'method' => $method, 'params' => $params]);
        if (strlen($line) - 1 > $this->maxLine) {
            $text = sprintf('the request has %d bytes, more than --max-line (%d)', strlen($line) - 1, $this->maxLine);
            throw new RequestError($text, ['kind' => 'invalidRequest', 'url' => $params['url'] ?? null], -32600);
        }
        $urls = [...isset($params['url']) ? [$params['url']] : [], ...$params['urls'] ?? []];
        $urls = array_map(fn ($item) => is_array($item) ? $item['url'] ?? '' : $item, $urls);
        $call = new Call($this, $this->lastID, $method, $urls, $onEvent === null ? null : $onEvent(...));
        $this->calls[$call->id] = $call;
        $this->outgoing[] = $line;
        return $call;
    }

    /** Sends a request whose answer is ignored. */
    private function tell(string $method, array $params): void
    {
        if (isset($this->pipes[0])) {
            $this->outgoing[] = self::encode(['id' => ++$this->lastID, 'method' => $method, 'params' => $params]);
        }
    }

    private static function encode(array $request): string
    {
        try {
            return json_encode(self::withObjects($request, 'params'), JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES) . "\n";
        } catch (\JsonException $error) {
            $text = 'texts must be valid UTF-8, and numbers finite: ' . $error->getMessage();
            throw new InvalidParamsError($text, ['kind' => 'invalidParams'], -32602);
        }
    }

    private static function withObjects(array $value, string|int ...$names): array
    {
        foreach ($value as $name => $each) {
            if (is_array($each)) {
                $isObject = in_array($name, self::OBJECTS, true) || in_array($name, $names, true);
                $each = self::withObjects($each, ...$name === 'outputs' ? array_keys($each) : []);
                $value[$name] = $isObject ? (object) $each : $each;
            }
        }
        return $value;
    }

    /** Reads and writes what is possible; waits for that at most so many seconds. */
    private function exchange(?float $seconds): void
    {
        $read = array_intersect_key($this->pipes, [1 => true, 2 => true]);
        $write = $this->outgoing === [] || !isset($this->pipes[0]) ? [] : [$this->pipes[0]];
        $none = null;
        $whole = $seconds === null ? null : (int) $seconds;
        $micro = $seconds === null ? null : (int) (($seconds - $whole) * 1e6);
        if (!@stream_select($read, $write, $none, $whole, $micro)) {
            return; // The time is over, or a signal came.
        }
        $ended = false;
        if ($write !== []) {
            $length = @fwrite($this->pipes[0], substr($this->outgoing[0], $this->written, 65536));
            $ended = $length === false; // A worker that does not read cannot answer.
            $this->written += (int) $length;
            if ($this->written >= strlen($this->outgoing[0])) {
                array_shift($this->outgoing);
                $this->written = 0;
            }
        }
        foreach ([2, 1] as $number) {
            if (in_array($this->pipes[$number] ?? null, $read, true) && !$this->readLines($number)) {
                $ended = $ended || $number === 1;
                if ($number === 2) {
                    unset($this->pipes[2]);
                }
            }
        }
        if ($ended) {
            $this->end();
        }
    }

    /** Returns false at the end. */
    private function readLines(int $number): bool
    {
        $text = fread($this->pipes[$number], 1 << 16);
        if ($text === false || $text === '') {
            return !feof($this->pipes[$number]);
        }
        $start = strlen($this->unread[$number]);
        $this->unread[$number] .= $text;
        if (strpos($this->unread[$number], "\n", $start) === false) {
            return true;
        }
        $lines = explode("\n", $this->unread[$number]);
        $this->unread[$number] = array_pop($lines);
        foreach ($lines as $line) {
            $number === 1 ? $this->receive($line) : $this->note($line);
        }
        return true;
    }

    private function note(string $line): void
    {
        $this->log = array_slice([...$this->log, $line], -20);
        $this->settings['onLog'] === null || ($this->settings['onLog'])($line);
    }

    private function receive(string $line): void
    {
        $message = json_decode($line, true);
        if (!is_array($message) || array_is_list($message)) {
            $line === '' || $this->note('the worker wrote a line that is not a message: ' . substr($line, 0, 40));
        } elseif (isset($message['method'])) {
            $params = (array) ($message['params'] ?? []);
            $call = is_int($params['id'] ?? null) ? $this->calls[$params['id']] ?? null : null;
            if ($call?->onEvent !== null) {
                $this->events[] = [$call, new Event($message['method'], $params)];
            }
        } elseif (!isset($message['id'])) {
            $this->askWhose((array) ($message['error'] ?? []));
        } elseif ($message['id'] === $this->greeting->id) {
            $this->greet($message);
        } elseif (is_int($message['id'])) {
            $this->deaths = 0;
            $this->answer($message);
        }
    }

    private function answer(array $message): void
    {
        $call = $this->calls[$message['id']] ?? null;
        if ($call === null) {
            if (isset($message['result']['pixels']['path'])) { // Of an abandoned call. Nobody else would release them.
                $this->tell('release', ['path' => $message['result']['pixels']['path'], 'unused' => true]);
            }
            return;
        }
        unset($this->calls[$call->id]);
        if ($call->refusal !== null && ($message['error']['code'] ?? 0) === -32600) {
            $message['error'] = $call->refusal;
        }
        $call->outcome = $message;
    }

    /** The answer to initialize. If it is an error or names another version, no other answer can be trusted. */
    private function greet(array $message): void
    {
        unset($this->calls[$this->greeting->id]);
        $version = $message['result']['protocolVersion'] ?? null;
        if ($version === self::PROTOCOL_VERSION) {
            $this->maxLine = $message['result']['limits']['maxLine'];
            $this->greeting->outcome = $message;
            return;
        }
        $reason = $version === null ? 'answers: ' . ($message['error']['message'] ?? '') : "speaks $version";
        $text = sprintf('this client speaks protocol version %d, and the worker %s', self::PROTOCOL_VERSION, $reason);
        $this->greeting->outcome = new IncompatibleWorkerError($text, ['kind' => 'incompatible']);
    }

    /**
     * The worker could not read a line. To find its call, all ids are sent again without a method: the worker answers the id
     * that it does not know, and refuses the others with data.id.
     */
    private function askWhose(array $refusal): void
    {
        if (isset($refusal['data']['id'])) {
            return;
        }
        $this->note('the worker refused a line: ' . ($refusal['message'] ?? ''));
        foreach ($this->calls as $id => $call) {
            $call->refusal = $refusal;
            if ($id > $this->askedID) {
                $this->outgoing[] = "{\"id\":$id}\n";
            }
        }
        $this->askedID = $this->lastID;
    }

    // Start and end

    /** Has a worker running, another one after the pause if there is none. */
    private function run(?float $deadline): void
    {
        if ($this->owner !== getmypid()) {
            $this->leaveToParent();
        }
        if ($this->process !== null && !$this->isClosed) {
            $this->exchange(0); // It may have ended meanwhile.
        }
        if ($this->isClosed) {
            throw new ClosedError('this ImageWorker is closed', ['kind' => 'closed']);
        }
        if ($this->process === null) {
            $this->awaitRestart($deadline);
            $this->start();
        }
        $greeting = $this->greeting;
        $this->wait($greeting, $deadline);
        if ($greeting->outcome instanceof IncompatibleWorkerError && $this->process !== null) {
            $this->end($greeting->outcome);
        }
        if ($greeting->outcome instanceof ImageWorkerError) {
            throw $this->failure->for(null);
        }
    }

    /** Waits until the next start. Throws if there will be none, or if too many workers died and it is not due yet. */
    private function awaitRestart(?float $deadline): void
    {
        if ($this->failure === null) {
            return;
        }
        ['maxRestarts' => $maxRestarts, 'longestPauseMs' => $longest] = $this->settings;
        $isGivenUp = $this->deaths > $maxRestarts;
        $pause = $isGivenUp ? $longest : min(100 * 2 ** ($this->deaths - 1), $longest);
        $due = $this->diedAt + $pause / 1000;
        $isEarly = microtime(true) < $due;
        if (!$this->failure->retryable || ($isGivenUp && $isEarly) || ($isEarly && $deadline !== null && $due > $deadline)) {
            throw $this->failure->for(null);
        }
        if ($isEarly) {
            usleep((int) (($due - microtime(true)) * 1e6) + 1);
        }
    }

    private function start(): void
    {
        $this->lastID = $this->askedID = $this->written = 0;
        $this->calls = $this->events = $this->outgoing = $this->log = [];
        $this->unread = [1 => '', 2 => ''];
        $this->maxLine = PHP_INT_MAX;
        $binary = self::findWorker($this->settings['binary']);
        $isMissing = $binary === null || !is_file($binary) || !is_executable($binary);
        $pipe = [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']];
        $process = $isMissing ? false : @proc_open([$binary, ...$this->flags], $pipe, $this->pipes);
        if ($process === false) {
            $this->log[] = match (true) {
                $binary === null => 'imageworker was not found: put a release of it on the PATH, ' .
                    'build it (swift build -c release), or set IMAGEWORKER to its path',
                $isMissing => "$binary was not found, or is not executable",
                default => error_get_last()['message'] ?? 'proc_open failed',
            };
            throw $this->died(null, null, $isMissing);
        }
        $this->process = $process;
        $this->status = proc_get_status($process);
        foreach ($this->pipes as $pipe) {
            stream_set_blocking($pipe, false);
            stream_set_chunk_size($pipe, 1 << 16);
        }
        $client = ['name' => 'ImageWorker.php', 'version' => self::VERSION];
        $params = ['protocolVersion' => self::PROTOCOL_VERSION, 'client' => $client, 'options' => $this->configured];
        $this->greeting = $this->send('initialize', $params, null);
    }

    /** The process has ended, or is of no use any more. */
    private function end(?ImageWorkerError $misfit = null): void
    {
        if ($this->status['running']) {
            proc_terminate($this->process, self::SIGKILL);
        }
        while ($this->status['running']) {
            usleep(1000);
            $this->status = proc_get_status($this->process);
        }
        $status = $this->status;
        while (isset($this->pipes[2]) && ($text = fread($this->pipes[2], 1 << 16))) {
            array_map($this->note(...), explode("\n", rtrim($this->unread[2] . $text, "\n")));
            $this->unread[2] = '';
        }
        $failure = $this->died($status['signaled'] ? "signal {$status['termsig']}" : $status['exitcode'], $misfit);
        $this->pipes = [];
        $this->process = null;
        [$calls, $this->calls] = [$this->calls, []];
        foreach ($calls as $call) {
            $call->outcome = $failure->for($call->urls[0] ?? null);
        }
    }

    /** Counts the end of a worker, and makes its error. */
    private function died(int|string|null $status, ?ImageWorkerError $misfit, bool $isMissing = false): ImageWorkerError
    {
        $this->deaths += 1;
        $this->diedAt = microtime(true);
        $this->hasRun = $this->hasRun || $status !== null;
        $isHopeless = $misfit !== null || in_array($status, self::HOPELESS, true) || ($isMissing && !$this->hasRun);
        $retryable = !$this->isClosed && !$isHopeless && $this->settings['maxRestarts'] > 0;
        $lost = array_merge(...array_values(array_map(fn ($call) => $call->urls, $this->calls)));
        $data = ['retryable' => $retryable, 'exitStatus' => $status, 'log' => $this->log, 'lost' => $lost];
        $text = $status === null ? 'the worker did not start' : "the worker ended (status $status)";
        $text .= $this->log === [] ? '' : ': ' . end($this->log);
        return $this->failure = $misfit === null ? new WorkerExited($text, ['kind' => 'workerExited'] + $data)
            : new IncompatibleWorkerError($misfit->getMessage(), ['kind' => 'incompatible'] + $data);
    }

    /** In a forked child: closes its copies of the pipes. Otherwise the worker would not notice the end of the program. */
    private function leaveToParent(): void
    {
        array_map('fclose', $this->pipes);
        $failure = new WorkerExited('the worker belongs to the parent', ['kind' => 'workerExited', 'retryable' => true]);
        foreach ($this->calls as $call) {
            $call->outcome = $failure;
        }
        $this->owner = getmypid();
        $this->pipes = $this->calls = [];
        $this->process = $this->failure = $this->greeting = null;
        $this->deaths = 0;
    }

    /** The argument, else $IMAGEWORKER, else the release build of the source tree, else the PATH. */
    public static function findWorker(?string $binary = null): ?string
    {
        if ($chosen = $binary ?: getenv('IMAGEWORKER')) {
            return $chosen;
        }
        foreach ([__DIR__ . '/../../.build/release', ...explode(':', getenv('PATH') ?: '')] as $folder) {
            if (is_file("$folder/imageworker") && is_executable("$folder/imageworker")) {
                return "$folder/imageworker";
            }
        }
        return null;
    }

    /** @return list<string> */
    private static function flags(string $name, mixed $value): array
    {
        $flag = '--' . strtolower(preg_replace('/[A-Z]/', '-$0', preg_replace('/Ms$/', '', $name)));
        return match (true) {
            $value === null, $value === false => [],
            $value === true => [$flag],
            is_array($value) && $name === 'events' => ["$flag=" . implode(',', $value)],
            is_array($value) => array_map(fn ($each) => "$flag=$each", $value),
            default => ["$flag=$value" . (str_ends_with($name, 'Ms') ? 'ms' : '')],
        };
    }
}

// Results

/** A result with the members of the protocol. A member that is null was left out. Members that are not known are ignored. */
abstract readonly class Result
{
    /** The classes of members that are lists, or values by name. */
    public const OF = [];

    /** @param array<string, mixed> $wire */
    public static function of(array $wire): static
    {
        $members = [];
        foreach ((new \ReflectionMethod(static::class, '__construct'))->getParameters() as $parameter) {
            $name = $parameter->getName();
            $value = $wire[$name] ?? null;
            $type = $parameter->getType() instanceof \ReflectionNamedType ? $parameter->getType()->getName() : '';
            $members[$name] = match (true) {
                $value === null => null,
                isset(static::OF[$name]) => array_map(static::OF[$name]::of(...), $value),
                is_subclass_of($type, self::class) => $type::of($value),
                $name === 'data' => base64_decode($value),
                default => $value,
            };
        }
        try {
            return new static(...$members);
        } catch (\TypeError $error) {
            throw new InternalError('the answer cannot be read: ' . $error->getMessage(), ['kind' => 'internal'], -32603);
        }
    }
}

final readonly class Server extends Result
{
    public function __construct(public string $name, public string $version) {}
}

final readonly class Formats extends Result
{
    public function __construct(public array $decode, public array $encode, public array $libraries) {}
}

final readonly class CacheLocation extends Result
{
    public function __construct(public string $directory, public string $namespace) {}
}

final readonly class InitializeResult extends Result
{
    public function __construct(
        public Server $server, public int $protocolVersion, public array $methods, public array $events,
        public array $limits, public CacheLocation $cache, public ?Formats $formats = null, public ?array $sandbox = null

    ) {}
}

final readonly class Timing extends Result
{
    public function __construct(
        public float $totalMs, public ?float $queuedMs = null, public ?float $lookupMs = null,
        public ?float $waitMs = null, public ?float $dnsMs = null, public ?float $connectMs = null,
        public ?float $tlsMs = null, public ?float $requestMs = null, public ?float $bodyMs = null,
        public ?float $storeMs = null, public ?float $decodeWaitMs = null, public ?float $decodeMs = null,
        public ?float $deliverMs = null, public ?float $firstByteMs = null

    ) {}
}

final readonly class Placeholder extends Result
{
    public function __construct(public string $thumbhash, public string $color) {}
}

final readonly class Container extends Result
{
    public function __construct(
        public ?bool $hasAlpha = null, public ?string $colorSpace = null, public ?int $bitDepth = null,
        public ?bool $hasGPS = null, public ?bool $c2pa = null

    ) {}
}

final readonly class EXIF extends Result
{
    public function __construct(
        public ?int $orientation = null, public ?string $dateTimeOriginal = null, public ?string $make = null,
        public ?string $model = null, public ?string $lensModel = null, public ?float $exposureTime = null,
        public ?float $fNumber = null, public ?float $iso = null, public ?float $focalLength = null,
        public ?float $focalLengthIn35mm = null, public ?string $artist = null, public ?string $copyright = null

    ) {}
}

final readonly class Position extends Result
{
    public function __construct(public float $latitude, public float $longitude, public ?float $altitude = null) {}
}

final readonly class Pixels extends Result
{
    public function __construct(
        public string $path, public int $offset, public int $width, public int $height, public int $stride,
        public int $channels, public int $bytes

    ) {}
}

final readonly class Size extends Result
{
    public function __construct(public int $width, public int $height) {}
}

final readonly class Source extends Result
{
    public function __construct(
        public int $bytes, public string $format, public ?int $width = null, public ?int $height = null,
        public ?int $frames = null, public ?int $orientation = null, public ?Size $upright = null

    ) {}
}

final readonly class HTTPResponse extends Result
{
    public function __construct(public int $status, public array $headers) {}
}

final readonly class OutputFile extends Result
{
    public function __construct(
        public int $bytes, public string $mediaType, public string $format, public int $width, public int $height,
        public ?int $frames = null, public ?int $orientation = null, public ?Size $upright = null,
        public ?int $quality = null, public ?string $path = null, public ?string $data = null

    ) {}
}

final readonly class Image extends Result
{
    public const OF = ['outputs' => OutputFile::class];

    public function __construct(
        public string $key, public string $cache, public int $bytes, public string $mediaType, public bool $kept,
        public ?string $url = null, public ?string $format = null, public ?int $width = null, public ?int $height = null,
        public ?string $path = null, public ?string $data = null, public ?Pixels $pixels = null,
        public ?Source $source = null, public ?array $outputs = null, public ?Placeholder $placeholder = null,
        public ?string $digest = null, public ?string $perceptualHash = null, public ?EXIF $exif = null,
        public ?Position $gps = null, public ?string $finalURL = null, public ?int $frames = null,
        public ?int $orientation = null, public ?HTTPResponse $response = null, public ?string $expiresAt = null,
        public ?bool $damaged = null, public ?string $hdr = null, public ?int $attempts = null,
        public ?Timing $timing = null, public ?Size $upright = null, public ?Container $container = null

    ) {}
}

final readonly class ProcessResult extends Result
{
    public const OF = ['outputs' => OutputFile::class];

    public function __construct(
        public int $bytes, public string $mediaType, public string $format, public Timing $timing,
        public ?int $width = null, public ?int $height = null, public ?int $frames = null, public ?int $orientation = null,
        public ?Placeholder $placeholder = null, public ?string $digest = null, public ?string $perceptualHash = null,
        public ?EXIF $exif = null, public ?Position $gps = null, public ?bool $damaged = null, public ?string $hdr = null,
        public ?array $outputs = null, public ?Size $upright = null, public ?Container $container = null

    ) {}
}

final readonly class ProbeResult extends Result
{
    public function __construct(
        public string $url, public string $key, public string $cache, public string $mediaType, public Timing $timing,
        public ?int $bytes = null, public ?int $received = null, public ?string $format = null, public ?int $width = null,
        public ?int $height = null, public ?int $frames = null, public ?int $orientation = null,
        public ?string $finalURL = null, public ?string $etag = null, public ?string $lastModified = null,
        public ?int $attempts = null, public ?Size $upright = null

    ) {}
}

final readonly class PrefetchError extends Result
{
    public function __construct(public string $url, public string $kind, public string $message) {}
}

final readonly class PrefetchResult extends Result
{
    public const OF = ['errors' => PrefetchError::class];

    public function __construct(
        public int $total, public int $downloaded, public int $cached, public int $failed, public int $cancelled,
        public int $bytes, public array $errors

    ) {}
}

final readonly class CancelResult extends Result
{
    public function __construct(public int $cancelled) {}
}

final readonly class PrioritizeResult extends Result
{
    public function __construct(public int $changed) {}
}

final readonly class PauseResult extends Result
{
    public function __construct(public bool $paused) {}
}

final readonly class Lease extends Result
{
    public function __construct(public int $pid) {}
}

final readonly class QueryResult extends Result
{
    public function __construct(
        public bool $memory, public bool $disk, public bool $fresh, public string $reason, public ?string $path = null,
        public ?int $bytes = null, public ?string $storedAt = null, public ?string $expiresAt = null,
        public ?string $usedAt = null, public ?int $uses = null, public ?string $etag = null,
        public ?string $directory = null, public ?int $variants = null, public ?array $varying = null,
        public ?array $transforms = null, public ?string $failure = null, public ?string $failedUntil = null,
        public ?Lease $lease = null

    ) {}
}

final readonly class ClearResult extends Result
{
    public function __construct(public int $removed, public int $bytes) {}
}

final readonly class ReleaseResult extends Result
{
    public function __construct(public int $released) {}
}

final readonly class RequestCounts extends Result
{
    public function __construct(public int $received, public int $succeeded, public int $failed, public int $cancelled) {}
}

final readonly class WaitingCounts extends Result
{
    public function __construct(
        public int $lowest, public int $low, public int $normal, public int $high, public int $highest

    ) {}
}

final readonly class QueueState extends Result
{
    public function __construct(
        public WaitingCounts $waiting, public int $active, public int $window, public bool $paused

    ) {}
}

final readonly class OriginState extends Result
{
    public function __construct(
        public string $origin, public int $active, public int $waiting, public int $window, public string $health,
        public ?string $heldUntil = null, public ?string $reason = null

    ) {}
}

final readonly class ResolverState extends Result
{
    public function __construct(
        public string $kind, public ?int $names = null, public ?int $waiting = null, public ?int $inFlight = null,
        public ?int $window = null, public ?int $lookups = null, public ?int $queries = null,
        public ?int $unanswered = null

    ) {}
}

final readonly class TransferCounts extends Result
{
    public function __construct(public int $started, public int $succeeded, public int $failed, public int $bytes) {}
}

final readonly class CacheCounts extends Result
{
    public function __construct(
        public int $memoryHits, public int $diskHits, public int $revalidated, public int $stale, public int $misses,
        public int $bytesSaved

    ) {}
}

final readonly class FailureExample extends Result
{
    public function __construct(
        public string $url, public string $message, public string $time, public ?int $status = null,
        public ?string $phase = null

    ) {}
}

final readonly class FailureState extends Result
{
    public function __construct(
        public string $kind, public int $count, public FailureExample $latest, public ?string $hint = null

    ) {}
}

final readonly class MemoryTierState extends Result
{
    public function __construct(public int $entries, public int $bytes, public int $limit, public int $evicted) {}
}

final readonly class EvictionCounts extends Result
{
    public function __construct(public int $limit, public int $freeSpace, public int $diskFull) {}
}

final readonly class DiskTierState extends Result
{
    public function __construct(
        public int $entries, public int $bytes, public int $limit, public int $evicted, public EvictionCounts $evictedFor

    ) {}
}

final readonly class DecoderState extends Result
{
    public function __construct(
        public int $running, public int $decoded, public int $failed, public int $crashed, public int $timedOut,
        public array $sandbox

    ) {}
}

final readonly class PixelsState extends Result
{
    public function __construct(public int $regions, public int $bytes) {}
}

final readonly class StatsResult extends Result
{
    public const OF = ['origins' => OriginState::class, 'failures' => FailureState::class];

    public function __construct(
        public float $uptimeMs, public RequestCounts $requests, public QueueState $queue, public array $origins,
        public ResolverState $resolver, public TransferCounts $transfers, public CacheCounts $cache,
        public array $failures, public MemoryTierState $memory, public DiskTierState $disk, public DecoderState $decoders,
        public PixelsState $pixels, public int $rssBytes

    ) {}
}

final readonly class MetricsResult extends Result
{
    public function __construct(public string $contentType, public string $text) {}
}

final readonly class OptionsResult extends Result
{
    public function __construct(
        public ?int $memoryLimit = null, public ?int $diskLimit = null, public ?int $maxAgeMs = null,
        public mixed $maxConcurrent = null, public mixed $maxPerHost = null, public ?int $maxConnectionsPerHost = null,
        public mixed $rate = null, public ?int $maxRedirects = null, public ?int $maxQueued = null,
        public ?string $order = null, public ?int $timeoutMs = null, public ?int $connectTimeoutMs = null,
        public ?int $minRate = null, public ?int $deadlineMs = null, public ?int $retries = null,
        public ?int $failedTtlMs = null, public ?int $maxBytes = null, public ?int $maxPixels = null,
        public ?int $decodeTimeoutMs = null, public ?int $minFree = null, public ?string $verify = null,
        public ?string $resolver = null, public ?string $network = null, public mixed $proxy = null,
        public ?string $userAgent = null, public ?array $header = null, public ?bool $insecure = null,
        public ?array $keyIgnoreQuery = null, public ?array $events = null, public ?string $eof = null,
        public ?bool $exitStatus = null, public ?string $logLevel = null, public ?string $logFormat = null

    ) {}
}

final readonly class TraceResult extends Result
{
    public function __construct(
        public string $path, public ?int $limit = null, public ?int $events = null, public ?int $bytes = null,
        public ?int $dropped = null, public ?bool $full = null

    ) {}
}


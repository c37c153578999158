#!/usr/bin/env php
<?php

// The protocol on standard input and output, with the PHP client in between. client_tests.py tells what is asked of it.

declare(strict_types=1);

use ImageWorker\Call;
use ImageWorker\Event;
use ImageWorker\ImageWorker;
use ImageWorker\ImageWorkerError;
use ImageWorker\Result;

require __DIR__ . '/../../../examples/php/ImageWorker.php';

set_error_handler(function (int $level, string $message, string $file, int $line): bool {
    if (error_reporting() & $level) {
        throw new ErrorException($message, 0, $level, $file, $line);
    }
    return true; // Suppressed by @.
});

/** A result as the protocol has it. */
function wire(mixed $value, bool $keepNull = false): mixed
{
    if ($value instanceof Result) {
        $members = [];
        foreach (get_object_vars($value) as $name => $each) {
            if ($each !== null || $keepNull) {
                $each = in_array($name, ['outputs', 'headers', 'libraries', 'limits'], true) ? (object) $each : $each;
                $members[$name] = $name === 'data' ? base64_encode($each) : wire($each);
            }
        }
        return (object) $members;
    }
    return is_array($value) || $value instanceof stdClass ? map($value) : $value;
}

function map(array|stdClass $value): array|stdClass
{
    $mapped = array_map(fn ($each) => wire($each), (array) $value);
    return is_array($value) ? $mapped : (object) $mapped;
}

/** The names of a result's members, with those of their members. */
function members(?string $class): object
{
    $names = [];
    foreach ($class === null ? [] : (new ReflectionMethod($class, '__construct'))->getParameters() as $parameter) {
        $type = (string) $parameter->getType();
        $inner = $class::OF[$parameter->getName()] ?? ltrim($type, '?');
        $names[$parameter->getName()] = is_subclass_of($inner, Result::class) ? members($inner) : new stdClass();
    }
    return (object) $names;
}

function say(array $line): void
{
    fwrite(STDOUT, json_encode(['jsonrpc' => '2.0'] + $line, JSON_THROW_ON_ERROR) . "\n");
}

if (array_slice($argv, 1) === ['--names']) {
    $classes = array_map(
        fn ($class) => [$class, ...array_values(array_filter(class_parents($class), fn ($each) => is_a($each, ImageWorkerError::class, true)))],
        ImageWorkerError::CLASSES
    );
    say(['params' => ImageWorker::PARAMS, 'results' => array_map(members(...), ImageWorker::RESULTS), 'classes' => $classes]);
    exit;
}

function refusal(ImageWorkerError $error): array
{
    $data = ['kind' => $error->kind, 'retryable' => $error->retryable] + array_filter($error->data, fn ($each) => $each !== null);
    return ['code' => $error->getCode(), 'message' => $error->getMessage(), 'data' => $data];
}

$files = [];

/** What is asked of the program itself. */
function own(ImageWorker $worker, string $what, array $params): mixed
{
    global $files;
    switch ($what) {
        case 'pid':
            return $worker->pid();
        case 'open':
            $files[] = fopen($params['path'], 'r');
            foreach (array_reverse(scandir('/proc/self/fd', SCANDIR_SORT_ASCENDING)) as $descriptor) {
                if (@readlink("/proc/self/fd/$descriptor") === $params['path']) {
                    return (int) $descriptor;
                }
            }
            throw new RuntimeException('no descriptor');
        case 'ready':
            return wire($worker->ready());
        case 'loadAll':
            $outcomes = [];
            foreach ($worker->loadAll($params['urls'], 3) as $index => $outcome) {
                $outcomes[] = [$index, $outcome->image?->width ?? $outcome->error->kind];
            }
            return $outcomes;
        case 'takePixels':
            return strlen($worker->takePixels($worker->load($params['url'], deliver: 'pixels')));
        case 'queryBinary':
            return wire($worker->query(key: hex2bin($params['key'])));
        case 'close':
            $worker->close();
            return null;
    }
    throw new RuntimeException($what);
}

$worker = new ImageWorker(
    binary: getenv('WORKER_OF_CLIENT') ?: null, arguments: array_slice($argv, 1), maxRestarts: 3, longestPauseMs: 1000,
    onLog: fn (string $line) => fwrite(STDERR, "$line\n")
);
/** @var array<int, array{mixed, string, Call, float|null}> */
$calls = [];

function sayAnswers(): void
{
    global $calls;
    foreach ($calls as $number => [$id, $method, $call, $deadline]) {
        if (!$call->isDone() && ($deadline === null || microtime(true) < $deadline)) {
            continue;
        }
        unset($calls[$number]);
        try {
            say(['id' => $id, 'result' => wire($call->value($call->isDone() ? null : 0), $method === 'configure')]);
        } catch (ImageWorkerError $error) {
            say(['id' => $id, 'error' => refusal($error)]);
        }
    }
}

function take(ImageWorker $worker, array $request): void
{
    global $calls, $ids;
    $id = $request['id'] ?? null;
    $params = $request['params'] ?? [];
    try {
        if (isset($request['program'])) {
            $result = own($worker, $request['program'], $params);
            sayAnswers();
            say(['id' => $id, 'result' => $result]);
            return;
        }
        if ($request['method'] === 'configure') { // Remembered.
            say(['id' => $id, 'result' => wire($worker->configure(...$params), true)]);
            return;
        }
        if ($request['method'] === 'shutdown') {
            $worker->shutdown(...$params);
            sayAnswers();
            say(['id' => $id, 'result' => new stdClass()]);
            return;
        }
        if (isset($params['id'])) {
            $params['id'] = $ids[$params['id']] ?? $params['id'];
        }
        if (isset($params['data'])) {
            $params['data'] = base64_decode($params['data']);
        }
        if (in_array($request['method'], ['load', 'prefetch'], true)) {
            $params += ['events' => null]; // Otherwise the client chooses.
        }
        $deadline = isset($request['giveUpAfter']) ? microtime(true) + $request['giveUpAfter'] : null;
        $onEvent = fn (Event $event) => say(['method' => $event->name, 'params' => ['id' => $id] + $event->params]);
        $call = $worker->submit($request['method'], $params, in_array($request['method'], ['load', 'prefetch'], true) ? $onEvent : null, $deadline);
        $ids[$id] = $call->id;
        $calls[] = [$id, $request['method'], $call, $deadline];
    } catch (ImageWorkerError $error) {
        say(['id' => $id, 'error' => refusal($error)]);
    } catch (InvalidArgumentException $error) { // The client knows all parameters.
        $data = ['kind' => 'invalidParams', 'retryable' => false, 'member' => preg_replace('/.* /', '', $error->getMessage())];
        say(['id' => $id, 'error' => ['code' => -32602, 'message' => $error->getMessage(), 'data' => $data]]);
    }
}

$ids = [];
$input = '';
stream_set_blocking(STDIN, false);
for ($ended = false; !$ended;) {
    [$read, $none] = [[STDIN], null];
    if (@stream_select($read, $none, $none, 0, $calls === [] ? 100_000 : 2_000)) {
        $text = fread(STDIN, 1 << 16);
        $ended = $text === '' && feof(STDIN);
        $input .= $text;
        if (str_contains($text, "\n")) {
            $lines = explode("\n", $input);
            $input = array_pop($lines);
            foreach ($lines as $line) {
                take($worker, json_decode($line, true));
            }
        }
    }
    $worker->poll(0.002);
    sayAnswers();
}
$worker->close(drain: true);
sayAnswers();

<?php

// What only the PHP client has: loadAll, handlers, forks and files. test_php_client.py runs it. Each check is a line.

declare(strict_types=1);

require __DIR__ . '/../../../examples/php/ImageWorker.php';

use ImageWorker\Event;
use ImageWorker\ImageWorker;
use ImageWorker\InvalidParamsError;
use ImageWorker\TimeoutError;

$origin = getenv('ORIGIN');
$cache = $argv[1];
$held = "$origin/image/1.png?hold=never";
$left = 0;

function check(string $name, bool $holds): void
{
    echo $holds ? 'ok' : 'not ok', " $name\n";
}

function command(string $name, array $members): bool
{
    return file_get_contents(getenv('ORIGIN_CONTROL') . "/$name?" . http_build_query($members)) !== false;
}

function pipesOf(int|string $pid): array
{
    $links = array_map(fn ($name) => (string) @readlink("/proc/$pid/fd/$name"), scandir("/proc/$pid/fd"));
    return array_filter($links, fn ($link) => str_starts_with($link, 'pipe:'));
}

$worker = new ImageWorker(cacheDir: $cache);
$worker->ready();

// Many loads, while the worker is killed
$tally = [];
$urls = array_map(fn ($number) => "$origin/image/$number.png?width=" . (20 + $number % 50), range(0, 399));
foreach ($worker->loadAll($urls, 100) as $number => $outcome) {
    $kind = $outcome->error?->kind ?? ($outcome->image->width === 20 + $number % 50 ? 'right' : 'wrong');
    $tally[$kind] = ($tally[$kind] ?? 0) + 1;
    if (array_sum($tally) === 150) {
        posix_kill($worker->pid(), 9);
    }
}
check('loadAll has an outcome for each URL: ' . json_encode($tally), array_sum($tally) === 400);
check('and no wrong one', array_diff(array_keys($tally), ['right', 'workerExited']) === []);

// Calls that end early
command('reset', []);
foreach ($worker->loadAll(["$origin/image/2000.png", "$held&x-1"]) as $outcome) {
    command('await', ['gate' => 'never', 'held' => 1]);
    break;
}
check('leaving loadAll cancels', command('await', ['left' => ++$left]));
try {
    $worker->load("$held&x-2", onEvent: function () {
        command('await', ['gate' => 'never', 'held' => 1]);
        throw new LogicException('from the handler');
    });
} catch (LogicException $error) {
    check('an exception of a handler comes out, and cancels', command('await', ['left' => ++$left]));
}
$width = 0;
$worker->load("$origin/image/2001.png", onEvent: function (Event $event) use ($worker, $origin, &$width) {
    $width = $worker->load("$origin/image/2002.png")->width;
});
check('a handler may call the worker', $width === 32);
foreach ([['colour' => 1], ['transform' => ['width' => NAN]]] as $params) {
    try {
        $worker->load('data:,', ...$params);
    } catch (InvalidArgumentException | InvalidParamsError $error) {
        check('wrong parameters are refused', true);
    }
}

// Forks
$pid = $worker->pid();
if (($child = pcntl_fork()) === 0) {
    $width = $worker->load("$origin/image/3.png")->width;
    file_put_contents("$cache-fork", json_encode([$width, $worker->pid(), count(array_intersect(pipesOf('self'), pipesOf($pid)))]));
    exit(0);
}
pcntl_waitpid($child, $status);
[$width, $own, $common] = json_decode(file_get_contents("$cache-fork"));
check('a fork has a worker of its own, and no pipe of the parent\'s', $width === 32 && $own !== $pid && $common === 0);
if (($child = pcntl_fork()) === 0) {
    exit(0);
}
pcntl_waitpid($child, $status);
check('the worker of the parent goes on', $worker->load("$origin/image/4.png")->width === 32 && $worker->pid() === $pid);
$other = new ImageWorker(cacheDir: $cache);
$other->ready();
check('another worker does not have the pipes', array_intersect(pipesOf($other->pid()), pipesOf($pid)) === []);

// Files
$bytes = file_get_contents($worker->load("$origin/image/5.png")->path);
$outputs = ['my_thumb' => ['transform' => ['width' => 8], 'deliver' => 'data']];
$file = tmpfile();
fwrite($file, $bytes);
check('a temporary file', str_starts_with($worker->process($file, outputs: $outputs)->outputs['my_thumb']->data, "\x89PNG"));
$memory = fopen('php://memory', 'w+');
fwrite($memory, $bytes);
check('a file in memory', $worker->process($memory)->width === 32);
check('data', $worker->process(data: $bytes, facts: ['digest'])->digest === 'sha256-' . hash('sha256', $bytes));
chdir(dirname($cache));
file_put_contents('ü.png', $bytes);
check('a relative path', $worker->process('ü.png')->format === 'png');
check('empty arrays', $worker->load("$origin/image/5.png", headers: [], want: [], transform: ['width' => 8])->width === 8);
check('an output named 0, without members', $worker->process(data: $bytes, outputs: [[]])->outputs[0]->width === 32);
$stopped = new ImageWorker(cacheDir: $cache, deadlineMs: 100);
$stopped->ready();
posix_kill($stopped->pid(), SIGSTOP);
$phase = null;
try {
    $stopped->process(data: $bytes);
} catch (TimeoutError $error) {
    $phase = $error->data['phase'];
}
check('a call of a worker that is stopped ends after its deadline', $phase === 'client');
posix_kill($stopped->pid(), SIGCONT);
check('and it goes on', $stopped->process(data: $bytes, deadlineMs: 0)->width === 32);
unset($stopped);
$start = microtime(true);
unset($worker);
check('unset closes', microtime(true) - $start < 4);

<?php

// A page under php-fpm, for test_php_fpm.py: the query names what it does with the uploaded picture.

declare(strict_types=1);

use ImageWorker\ImageWorker;
use ImageWorker\ImageWorkerError;

require __DIR__ . '/ImageWorker.php';

header('Content-Type: application/json');
[$binary, $cache] = [$_GET['binary'] ?? null, $_GET['cache'] ?? null];
$worker = $cache === null ? new ImageWorker(binary: $binary, memoryLimit: 0, diskLimit: 0) : new ImageWorker(binary: $binary, cacheDir: $cache);
$upload = $_FILES['picture']['tmp_name'] ?? null;
try {
    $answer = match ($_GET['do']) {
        'process' => $worker->process($upload, validate: 'decode', outputs: ['thumb' => ['transform' => ['width' => 160], 'saveTo' => $_GET['to']]]),
        'store' => $worker->store(key: 'a', path: $upload),
        'query' => $worker->query(key: 'a'),
    };
} catch (ImageWorkerError $error) {
    http_response_code($error->retryable ? 503 : 422);
    $answer = ['kind' => $error->kind, 'message' => $error->getMessage()];
}
echo json_encode(['answer' => $answer, 'process' => getmypid(), 'worker' => $worker->pid()]);
match ($_GET['end'] ?? null) {
    null => null,
    'exit' => exit(1),
    'fault' => missing(),
    'forever' => (function () {
        flush();
        while (true) {
        }
    })(),
    'sleep' => (function () use ($worker) {
        file_put_contents($_GET['to'] . '.pid', json_encode([getmypid(), $worker->pid()]));
        sleep(60);
    })(),
};

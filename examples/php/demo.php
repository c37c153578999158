#!/usr/bin/env php
<?php

// Loads the URLs given as arguments, all at once, and prints the outcome of each. The exit status is 1 if a load failed, and 69
// if the worker cannot be started.

declare(strict_types=1);

use ImageWorker\ImageWorker;
use ImageWorker\ImageWorkerError;

require __DIR__ . '/ImageWorker.php';

$urls = array_slice($argv, 1);
if ($urls === [] || str_starts_with($urls[0], '-')) {
    fwrite(STDERR, "usage: demo.php URL...\n");
    exit(64);
}
$worker = new ImageWorker();
try {
    $worker->ready();
} catch (ImageWorkerError $error) {
    fwrite(STDERR, "demo.php: {$error->getMessage()}\n");
    exit(69);
}

$status = 0;
foreach ($worker->loadAll($urls) as $outcome) {
    [$image, $error] = [$outcome->image, $outcome->error];
    if ($error !== null) {
        fwrite(STDERR, "$error->kind: {$error->getMessage()}  $outcome->url\n");
        $status = 1;
    } else {
        echo "$image->cache  $image->format $image->width x $image->height  $image->path\n";
    }
}
$worker->close();
exit($status);

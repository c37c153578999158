// examples/node/imageworker.mjs against the built worker. test_node_client.py starts the origin and runs this.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";

import { ImageWorker, ImageWorkerError, WorkerExited } from "../../examples/node/imageworker.mjs";

const origin = process.env.ORIGIN;
const folder = mkdtempSync(join(tmpdir(), "imageworker-"));
after(() => rmSync(folder, { recursive: true }));

async function command(name, members = {}) {
  const answer = await fetch(`${process.env.ORIGIN_CONTROL}/${name}?${new URLSearchParams(members)}`);
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}

let caches = 0;
async function withWorker(options, body) {
  const worker = new ImageWorker({ options: ["--cache-dir", join(folder, `cache-${++caches}`), ...options] });
  try {
    await body(worker);
  } finally {
    await worker.close();
  }
}

beforeEach(() => command("reset"));

test("a loaded image is a file with its size", () =>
  withWorker([], async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?bytes=4000`);
    assert.deepEqual([image.cache, image.format, image.width, image.height], ["miss", "png", 32, 24]);
    assert.equal(readFileSync(image.path).length, 4000);
  }));

test("pixels are a buffer, and released", () =>
  withWorker([], async (worker) => {
    const { pixels } = await worker.load(`${origin}/image/1.png?width=30&height=20`, { deliver: "pixels" });
    const rows = await worker.takePixels(pixels);
    assert.equal(rows.length, 20 * pixels.stride);
    assert.equal((await worker.call("stats")).pixels.regions, 0);
  }));

test("events come to the callback before the result", () =>
  withWorker([], async (worker) => {
    const names = [];
    await worker.load(`${origin}/image/1.png?bytes=100000`, { onEvent: ({ name }) => names.push(name) });
    assert.equal(names[0], "started");
  }));

test("the iterator of events ends with the result", () =>
  withWorker([], async (worker) => {
    const events = [];
    for await (const event of worker.loadEvents(`${origin}/image/1.png`)) events.push(event);
    assert.equal(events[0].name, "started");
    assert.equal(events.at(-1).name, "completed");
    assert.equal(events.at(-1).params.format, "png");
  }));

test("leaving the iterator early cancels the load", () =>
  withWorker([], async (worker) => {
    for await (const _ of worker.loadEvents(`${origin}/image/1.png?hold=never`)) {
      await command("await", { gate: "never", held: 1 });
      break;
    }
    await command("await", { left: 1 });
  }));

test("errors carry kind, code, retryable and data", () =>
  withWorker(["--retries", "0"], async (worker) => {
    const missing = await worker.load(`${origin}/image/1.png?status=404`).catch((error) => error);
    assert.ok(missing instanceof ImageWorkerError);
    assert.deepEqual([missing.kind, missing.code, missing.retryable, missing.data.status], ["http", 2005, false, 404]);
    const broken = await worker.load(`${origin}/image/2.png?bytes=5000&truncate=1000`).catch((error) => error);
    assert.deepEqual([broken.kind, broken.retryable], ["truncated", true]);
    const refused = await worker.load(`${origin}/image/3.png`, { colour: "red" }).catch((error) => error);
    assert.deepEqual([refused.kind, refused.data.member], ["invalidParams", "colour"]);
  }));

test("aborting the signal rejects with its reason and cancels the load", () =>
  withWorker([], async (worker) => {
    const controller = new AbortController();
    const loading = worker.load(`${origin}/image/1.png?hold=never`, { signal: controller.signal });
    await command("await", { gate: "never", held: 1 });
    const reason = new Error("scrolled away");
    controller.abort(reason);
    await assert.rejects(loading, reason);
    await command("await", { left: 1 });
    await assert.rejects(worker.load(`${origin}/image/2.png`, { signal: controller.signal }), reason);
    await worker.load(`${origin}/image/2.png`);
  }));

test("a killed worker fails each pending load once", () =>
  withWorker([], async (worker) => {
    const loads = Array.from({ length: 100 }, (_, n) => worker.load(`${origin}/image/${n}.png?hold=never`));
    const outcomes = Promise.allSettled(loads);
    await command("await", { gate: "never", held: 6 });
    process.kill(worker.pid, "SIGKILL");
    for (const { reason } of await outcomes) assert.ok(reason instanceof WorkerExited, String(reason));
    await assert.rejects(worker.load(`${origin}/image/1.png`), WorkerExited);
  }));

test("a bad option is told in the error", () =>
  withWorker(["--no-such-option"], async (worker) => {
    const refused = await worker.load(`${origin}/image/1.png`).catch((error) => error);
    assert.equal(refused.data.exitStatus, 64);
    assert.match(refused.message, /--no-such-option/);
  }));

test("a thousand loads at once with a talkative log", () =>
  withWorker(["--log-level", "debug", "--max-per-host", "16"], async (worker) => {
    const urls = Array.from({ length: 1000 }, (_, n) => `${origin}/image/${n}.png`);
    const images = await Promise.all(urls.map((url) => worker.load(url)));
    assert.deepEqual(images.map((image) => image.url), urls);
  }));

test("an inline image of megabytes is one line", () =>
  withWorker([], async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?bytes=6000000`, { deliver: "data" });
    assert.equal(Buffer.from(image.data, "base64").length, 6_000_000);
  }));

test("requests longer than the pipe do not dead-lock", () =>
  withWorker([], async (worker) => {
    const result = await worker.prefetch(Array(20_000).fill(`${origin}/image/1.png`));
    assert.deepEqual([result.total, result.failed], [20_000, 0]);
  }));

test("closing cancels what is pending", () =>
  withWorker([], async (worker) => {
    const loading = worker.load(`${origin}/image/1.png?hold=never`).catch((error) => error);
    await command("await", { gate: "never", held: 1 });
    await worker.close();
    assert.equal((await loading).kind, "cancelled");
  }));

// What examples/node/imageworker.d.ts must let pass, and what it must not. test_client_types.py has tsc read it.

import { DecodingError, ImageWorker, ImageWorkerError, WorkerExited, type Image } from "../../examples/node/imageworker.mjs";

/** What `await using` asks for, which tsc reads from 5.2 on. */
export const disposable: { [Symbol.asyncDispose](): PromiseLike<void> } = new ImageWorker();

export async function use(signal: AbortSignal): Promise<number> {
  const worker = new ImageWorker({ options: ["--retries", "0"], onExit: (end: WorkerExited) => end.lost.join() });
  const image: Image = await worker.load("https://example.com/cat.jpg", {
    priority: "high",
    transform: { width: 256, fit: "cover" },
    events: ["started", "preview"],
    signal,
    onEvent: ({ name, params }) => void [name.length, params.received],
  });
  for await (const { name } of worker.loadEvents("https://example.com/cat.jpg", { cache: "refresh" })) void name.length;
  try {
    const { downloaded } = await worker.prefetch(["https://example.com/1.jpg", { url: "https://example.com/2.jpg", key: "2" }]);
    void downloaded.toFixed();
    // @ts-expect-error: there is no such priority.
    await worker.load("https://example.com/cat.jpg", { priority: "urgent" });
    // @ts-expect-error: there is no such parameter.
    await worker.load("https://example.com/cat.jpg", { colour: "red" });
    // @ts-expect-error: a width may be missing.
    return image.width;
  } catch (error) {
    if (error instanceof DecodingError && error.kind === "corrupt") return error.code;
    // @ts-expect-error: there is no such kind.
    if (error instanceof ImageWorkerError && error.kind === "purple") return 0;
    throw error;
  } finally {
    await worker.close();
  }
}

/**
 * A million files under a prefix, in a thousand directories and in one: listed, filtered and enqueued as paths. CPU and
 * memory of the controller.
 */
import { closeSync, mkdirSync, openSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../test/harness/eventually.ts";
import type { TestServer } from "../test/harness/server.ts";
import { cpuSeconds, report, rssMiB } from "./measure.ts";

const FILES = 1_000_000;

/** Not in the checkout, because tools that look for sources would walk through it. */
export const FILES_DIRECTORY = join(realpathSync(tmpdir()), "quern-bench-files");

export async function benchFiles(server: TestServer): Promise<void> {
  for (const [name, perDirectory] of [
    ["nested", 1000],
    ["flat", FILES],
  ] as const) {
    const tree = makeTree(join(FILES_DIRECTORY, name), perDirectory);
    // Creating the files blocked this process for longer than the server keeps idle connections, so the first reuse of
    // one fails.
    await server.fetch("/-/livez").catch(() => {});
    await benchTree(server, tree, name);
    rmSync(tree, { recursive: true });
  }
}

async function benchTree(server: TestServer, root: string, name: string): Promise<void> {
  const controller = server.child("controller");
  const cpuBefore = cpuSeconds(controller);
  const started = performance.now();
  const id = await server.submit("noop-batch", {
    workers: 1,
    file_path_lister: {
      store_paths: [`file://${root}/`],
      includes: ["**.{png,jpg}"],
      excludes: ["**_bad.png"],
      batch_size: 100,
    },
  });
  let most = 0;
  await eventually(
    "all is enqueued",
    async () => {
      most = Math.max(most, rssMiB(controller));
      return (await server.job("noop-batch", id)).status !== "status_enqueuing";
    },
    120_000,
  );
  const seconds = (performance.now() - started) / 1000;
  const cpu = cpuSeconds(controller) - cpuBefore;
  const { total_batch_count } = await server.job("noop-batch", id);
  if (total_batch_count !== FILES / 100) throw new Error(`${total_batch_count} batches were enqueued`);
  await server.ended("noop-batch", id);
  console.log(`  ${name}: ${(FILES / seconds / 1000).toFixed(0)}k files/s, ${seconds.toFixed(1)} s`);
  report(`CPU a file, a million files, ${name}, µs`, (cpu / FILES) * 1e6, "<= 15", cpu / FILES <= 15e-6);
  report(`controller RSS while enqueuing a million files, ${name}, MiB`, most, "<= 200", most <= 200);
}

/** In an order that is not the sorted one. A file in ten is excluded, or not included, on top of the million. */
function makeTree(root: string, perDirectory: number): string {
  rmSync(root, { recursive: true, force: true });
  for (let at = 0; at < FILES; at++) {
    const i = (at * 7919) % FILES;
    const directory = join(root, `d${String(i % Math.ceil(FILES / perDirectory)).padStart(4, "0")}`);
    if (at < FILES / perDirectory) mkdirSync(directory, { recursive: true });
    closeSync(openSync(join(directory, `img_${i}.png`), "w"));
    if (i % 20 === 0) closeSync(openSync(join(directory, `img_${i}_bad.png`), "w"));
    if (i % 20 === 10) closeSync(openSync(join(directory, `img_${i}.txt`), "w"));
  }
  return root;
}

/** One job of the benchmarks of outputs, from its submission to its end. */
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../test/harness/eventually.ts";
import type { TestServer } from "../test/harness/server.ts";
import { cpuSeconds } from "./measure.ts";

const LOOK_EVERY_MS = 250;

export interface OutputJob {
  path: string;
  batchSize: number;
  /** The address of a directory; undefined is without output. */
  output?: string | undefined;
  config?: object;
}

export interface TimedJob {
  id: string;
  seconds: number;
  /** CPU seconds. */
  controllerS: number;
  workersS: number;
}

/** `onLook` is called a few times a second while it runs. */
export async function outputJob(
  server: TestServer,
  { path, batchSize, output, config = {} }: OutputJob,
  onLook: () => void = () => {},
): Promise<TimedJob> {
  const controller = server.child("controller");
  const before = { own: cpuSeconds(controller), all: cpuSeconds(controller, true) };
  const id = await server.submit("echo-batch", {
    ...{ workers: 2, config, delimited_files: { store_paths: [`file://${path}`], batch_size: batchSize } },
    ...(output === undefined ? {} : { output: { store_path: output } }),
  });
  let job = await server.job("echo-batch", id);
  for (; job.end_time === undefined; job = await server.job("echo-batch", id)) {
    await pause(LOOK_EVERY_MS);
    onLook();
  }
  await eventually("the job's workers have ended", () => server.workers().length === 0);
  if (job.status !== "status_succeeded")
    throw new Error(`the job ended ${job.status}: ${job.reason?.message}`);
  const controllerS = cpuSeconds(controller) - before.own;
  const created = Date.parse((job as unknown as { created_time: string }).created_time);
  return {
    id,
    seconds: (Date.parse(job.end_time) - created) / 1000,
    controllerS,
    workersS: cpuSeconds(controller, true) - before.all - controllerS,
  };
}

/**
 * After this process was blocked for longer than the server keeps idle connections: the first request on one fails.
 */
export async function dropIdleConnection(server: TestServer): Promise<void> {
  await server.fetch("/-/livez").catch(() => {});
}

/** The rate, and the CPU that an item costs. */
export function text(name: string, job: TimedJob, items: number): string {
  const each = (seconds: number) => ((seconds / items) * 1e6).toFixed(2);
  return `${name} ${Math.round(items / job.seconds)} items/s (µs CPU: controller ${each(job.controllerS)}, workers ${each(job.workersS)})`;
}

/** Metrics about the server itself: its build, processes, disk, database, compute and certificate. */
import { X509Certificate } from "node:crypto";
import { readFile, statfs } from "node:fs/promises";
import type { ComputeShown } from "../contracts/http/answers.ts";
import type { Family, Sample } from "../observe/exposition.ts";
import { type OwnProcess, ownProcesses } from "./own-processes.ts";

export interface ServerMetricsDeps {
  version: string;
  parentPid: number;
  dataDir: string;
  /** The file of the certificate for TLS. */
  certificate: string | undefined;
  databaseBytes: () => Promise<number>;
  compute: () => ComputeShown;
  /** How many replicas and workers wait for compute, and for how many seconds the first of them. */
  waitingForCompute: () => { count: number; longestSeconds: number };
  gateways: () => { wanted: number; connected: number };
}

/** Name, type and help, as in metrics.ts. */
export const SERVER_METRICS = {
  quern_build_info: ["gauge", "1, with the version of Quern and of Node"],
  quern_process_start_time_seconds: ["gauge", "when a process of the server started (Unix time); Linux only"],
  quern_process_cpu_seconds_total: ["counter", "CPU time of a process of the server; Linux only"],
  quern_process_resident_memory_bytes: ["gauge", "memory of a process of the server; Linux only"],
  quern_process_open_fds: ["gauge", "open files and connections of a process of the server; Linux only"],
  quern_gateways: ["gauge", "gateways that follow the controller"],
  quern_gateways_wanted: ["gauge", "gateways that there should be"],
  quern_disk_free_bytes: ["gauge", "free space on the disk of the data directory"],
  quern_disk_size_bytes: ["gauge", "size of the disk of the data directory"],
  quern_database_size_bytes: ["gauge", "size of the database"],
  quern_compute_capacity: [
    "gauge",
    "compute that replicas and workers may reserve: cpus, memory_bytes, gpus",
  ],
  quern_compute_free: ["gauge", "compute that nothing has reserved"],
  quern_compute_waiting: ["gauge", "replicas and workers that wait for compute"],
  quern_compute_waiting_seconds: ["gauge", "how long the first of them has waited"],
  quern_certificate_expiry_seconds: ["gauge", "when the certificate for TLS ends (Unix time)"],
} as const satisfies Record<string, readonly [Family["type"], string]>;

type Samples = Record<keyof typeof SERVER_METRICS, Sample[]>;

export async function serverSamples(deps: ServerMetricsDeps): Promise<Samples> {
  const { connected, wanted } = deps.gateways();
  const waiting = deps.waitingForCompute();
  return {
    quern_build_info: [{ labels: { version: deps.version, node: process.version }, value: 1 }],
    ...processSamples(ownProcesses(deps.parentPid)),
    quern_gateways: single(connected),
    quern_gateways_wanted: single(wanted),
    ...(await diskSamples(deps.dataDir)),
    quern_database_size_bytes: await deps.databaseBytes().then(single, () => []),
    ...computeSamples(deps.compute()),
    quern_compute_waiting: single(waiting.count),
    quern_compute_waiting_seconds: single(waiting.longestSeconds),
    quern_certificate_expiry_seconds: await certificateSamples(deps.certificate),
  };
}

function single(value: number): Sample[] {
  return [{ labels: {}, value }];
}

/** None if the disk does not tell. */
async function diskSamples(dataDir: string) {
  const disk = await statfs(dataDir).catch(() => undefined);
  const each = (blocks: number | undefined) => (disk === undefined ? [] : single(blocks! * disk.bsize));
  return { quern_disk_free_bytes: each(disk?.bavail), quern_disk_size_bytes: each(disk?.blocks) };
}

/** Gateways are numbered, in the order of their process ids. */
function processSamples(processes: readonly OwnProcess[]) {
  const gateways = processes.filter((one) => one.process === "gateway");
  const labelsOf = (one: OwnProcess): Sample["labels"] =>
    one.process === "gateway"
      ? { process: one.process, number: String(gateways.indexOf(one)) }
      : { process: one.process };
  const each = (read: (one: OwnProcess) => number) =>
    processes.map((one) => ({ labels: labelsOf(one), value: read(one) }));
  return {
    quern_process_start_time_seconds: each(({ startSeconds }) => startSeconds),
    quern_process_cpu_seconds_total: each(({ cpuSeconds }) => cpuSeconds),
    quern_process_resident_memory_bytes: each(({ residentBytes }) => residentBytes),
    quern_process_open_fds: each(({ openFiles }) => openFiles),
  };
}

function computeSamples({ cpus, memory_bytes, gpus }: ComputeShown) {
  const parts = Object.entries({ cpus, memory_bytes, gpus });
  const each = (part: "total" | "free") =>
    parts.map(([resource, amounts]) => ({ labels: { resource }, value: amounts[part] }));
  return { quern_compute_capacity: each("total"), quern_compute_free: each("free") };
}

/** None without TLS, or while the file is being replaced. */
async function certificateSamples(file: string | undefined): Promise<Sample[]> {
  if (file === undefined) return [];
  try {
    return single(Date.parse(new X509Certificate(await readFile(file)).validTo) / 1000);
  } catch {
    return [];
  }
}

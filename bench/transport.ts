/**
 * From a gateway's connection to a worker and back, over the local socket, TCP and TLS: the protocol alone, without
 * HTTP. Interleaved in one run, so that only ratios count. The CPU of both processes (the worker, and this one in the
 * place of a gateway) says more than the rate if the machine does other work meanwhile.
 */
import { StartedWorker, type WorkerKind } from "../test/harness/started-worker.ts";
import { cpuSeconds, median, report } from "./measure.ts";

const KINDS = ["unix", "tcp", "tls"] as const;
const SECONDS = 1;
const SIZES = [
  { what: "100 B", bytes: 100, inFlight: 64 },
  { what: "64 KiB", bytes: 64 * 1024, inFlight: 16 },
  { what: "1 MiB", bytes: 1024 * 1024, inFlight: 4 },
];
/** A short payload goes both ways; a long one only to the worker, because a long response is a stream. */
const PREDICTOR = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): return payload if len(payload) < 200_000 else 1
`;

export async function benchTransport(rounds: number): Promise<void> {
  const workers = new Map<WorkerKind, StartedWorker>();
  for (const kind of KINDS) workers.set(kind, await StartedWorker.start(kind, PREDICTOR));
  try {
    const callers = new Map<WorkerKind, Awaited<ReturnType<StartedWorker["ready"]>>>();
    for (const [kind, worker] of workers) callers.set(kind, await worker.ready());
    for (const size of SIZES) {
      const rates = new Map<WorkerKind, number[]>(KINDS.map((kind) => [kind, []]));
      const cpus = new Map<WorkerKind, number[]>(KINDS.map((kind) => [kind, []]));
      for (let round = 0; round <= rounds; round++) {
        const line: string[] = [];
        for (const kind of KINDS) {
          const pid = workers.get(kind)!.process.pid!;
          const { rate, workerUs, callerUs } = await measure(callers.get(kind)!, size, pid);
          if (round > 0) {
            rates.get(kind)!.push(rate);
            cpus.get(kind)!.push(workerUs + callerUs);
          }
          const cpu = `${workerUs.toFixed(0)} + ${callerUs.toFixed(0)} µs CPU of worker and caller`;
          line.push(`${kind} ${Math.round(rate)}/s, ${cpu}`);
        }
        if (round > 0) console.log(`  ${size.what}: ${line.join(" | ")}`);
      }
      const local = rates.get("unix")!;
      for (const kind of ["tcp", "tls"] as const) {
        const ratio = median(rates.get(kind)!.map((rate, round) => rate / local[round]!));
        report(`predictions of ${size.what} over ${kind} / local socket`, ratio, ">= 0.7", ratio >= 0.7);
        const cpu = median(cpus.get("unix")!) / median(cpus.get(kind)!);
        console.log(`  CPU of worker and caller: ${(1 / cpu).toFixed(2)} times that of the local socket`);
      }
    }
  } finally {
    for (const worker of workers.values()) worker.stop();
  }
}

async function measure(
  caller: Awaited<ReturnType<StartedWorker["ready"]>>,
  { bytes, inFlight }: { bytes: number; inFlight: number },
  pid: number,
): Promise<{ rate: number; workerUs: number; callerUs: number }> {
  const body = Buffer.from(JSON.stringify("x".repeat(bytes - 2)));
  const cpu = cpuSeconds(pid);
  const own = process.cpuUsage();
  const begun = performance.now();
  const end = begun + SECONDS * 1000;
  let done = 0;
  const lane = async () => {
    while (performance.now() < end) {
      await caller.predict(body);
      done++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  const seconds = (performance.now() - begun) / 1000;
  const { user, system } = process.cpuUsage(own);
  const workerUs = ((cpuSeconds(pid) - cpu) / done) * 1e6;
  return { rate: done / seconds, workerUs, callerUs: (user + system) / done };
}

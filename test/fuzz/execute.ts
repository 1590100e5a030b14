/** The process that runs the inputs of one target: it may hang, crash, or use up memory, and the fuzzer notices. */
import { Socket } from "node:net";
import { type Answer, KEEP, LOOK, readMessages, writeMessage } from "./channel.ts";
import { Coverage } from "./coverage.ts";
import type { Ran } from "./target.ts";
import { TARGETS } from "./targets.ts";

/** The limit of one input: linear work on the longest takes some milliseconds, and this machine may be slow. */
const CPU_MS_MAX = 2_000;
const GROWTH_BYTES_MAX = 400 * 1024 * 1024;

const socket = new Socket({ fd: 3 });
const target = TARGETS[process.argv[2]!]!;
if (!("run" in target)) throw new Error(`${process.argv[2]} is run by Python`);
const tearDown = await target.setUp?.();
const coverage = target.covers === undefined ? undefined : new Coverage(target.covers);
const seen = new Set<string>();
const restingBytes = process.memoryUsage.rss();
/** Rejects with an error that no promise and no caller took, while an input runs. */
let onUncaught: (error: unknown) => void = () => {};
for (const event of ["uncaughtException", "unhandledRejection"] as const)
  process.on(event, (error: unknown) => onUncaught(error ?? new Error(event)));

/** One after the other: an input that waits for something must not see the next one. */
let last = Promise.resolve();
readMessages(socket, (message) => {
  last = last.then(async () => {
    const answer = await answerTo(message[0]!, message.subarray(1));
    writeMessage(socket, Buffer.from(JSON.stringify(answer)));
  });
});
socket.on("end", () => void last.then(() => tearDown?.()).then(() => process.exit(0)));
writeMessage(socket, Buffer.from("{}"));

async function answerTo(command: number, input: Buffer): Promise<Answer> {
  if (command === LOOK || command === KEEP) return { fresh: coverage?.look(command === KEEP) ?? false };
  const before = process.cpuUsage();
  const uncaught = new Promise<never>((_, reject) => {
    onUncaught = reject;
  });
  try {
    const ran = await Promise.race([run(input), uncaught]);
    const { user, system } = process.cpuUsage(before);
    const cpuMs = (user + system) / 1000;
    if (cpuMs > CPU_MS_MAX)
      return { finding: `${input.length} bytes took ${Math.round(cpuMs)} ms of a core` };
    const grown = process.memoryUsage.rss() - restingBytes;
    if (grown > GROWTH_BYTES_MAX) return { finding: `the process has grown by ${grown >> 20} MiB` };
    return { claim: ran?.claim, ...(coverage === undefined && { fresh: isNew(ran?.features) }) };
  } catch (error) {
    return { finding: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

async function run(input: Buffer): Promise<Ran | undefined> {
  if (!("run" in target)) return undefined;
  // Its own memory: what reads past its end does not find the next message there.
  return target.run(Buffer.from(input));
}

function isNew(features: readonly string[] = []): boolean {
  const fresh = features.filter((feature) => !seen.has(feature));
  for (const feature of fresh) seen.add(feature);
  return fresh.length > 0;
}

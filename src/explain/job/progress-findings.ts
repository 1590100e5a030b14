/** Why a job that runs is slow: starved workers, stragglers, its timeout, messages that wait. Pure. */
import { type Finding, found } from "../finding.ts";
import { bytesPerSecond, count, duration, percent, size } from "../words.ts";
import { memoryFindings } from "../worker-findings.ts";
import type { JobFacts, JobWorkerFacts } from "./job-facts.ts";

/** A batch is a straggler if it runs so many times as long as the average, and at least so many seconds. */
const STRAGGLER_TIMES = 10;
const STRAGGLER_LEAST_S = 3;
/** Workers starve if the store is read nearly all the time, and they have nothing to do half of theirs. */
const READING_SHARE = 0.7;
const IDLE_SHARE = 0.5;
const STARVED_LEAST_S = 1;
/** A job that needs more than this share of what is left of its timeout may not end in time. */
const TIMEOUT_SHARE = 0.8;

export function progressFindings(facts: JobFacts): Finding[] {
  const { apiName, jobId } = facts;
  return [
    ...starvedFindings(facts),
    ...stragglerFindings(facts),
    ...timeoutFindings(facts),
    ...letterFindings(facts),
    ...memoryFindings(facts.workers, `quern job get ${apiName} ${jobId}`),
  ];
}

function starvedFindings({ input, workers, apiName, jobId, storeError }: JobFacts): Finding[] {
  const ready = workers.filter(({ state }) => state === "ready");
  if (input === undefined || input.isExhausted || ready.length === 0 || storeError !== undefined) return [];
  const { bytes, readS, sinceS } = input;
  if (sinceS < STARVED_LEAST_S || readS < READING_SHARE * sinceS) return [];
  const idle = ready.filter(isIdle);
  if (idle.length < ready.length / 2) return [];
  const title = `${idle.length} of ${count(ready.length, "worker")} mostly idle, because the store delivers only ${bytesPerSecond(bytes, readS)}`;
  return [
    found("starved", "warning", title, {
      evidence: [
        `${size(bytes)} of input read in ${duration(readS)}, ${percent(readS, sinceS)} of the time`,
        ...idle
          .slice(0, 3)
          .map(({ id, idleShare }) =>
            idleShare === undefined
              ? `worker ${id} has had no batch yet`
              : `worker ${id} has had no batch for ${percent(idleShare, 1)} of its time`,
          ),
      ],
      cure: "more workers do not help: move the input closer to the server, use larger files, or a faster store",
      command: `quern job get ${apiName} ${jobId}`,
    }),
  ];
}

function isIdle({ busy, idleShare }: JobWorkerFacts): boolean {
  return idleShare === undefined ? busy === undefined : idleShare >= IDLE_SHARE;
}

function stragglerFindings(facts: JobFacts): Finding[] {
  const { averageS, workers, apiName, jobId } = facts;
  if (averageS === undefined) return [];
  const least = Math.max(STRAGGLER_LEAST_S, STRAGGLER_TIMES * averageS);
  const late = workers.flatMap(({ id, busy }) =>
    busy !== undefined && busy.forS >= least ? [{ id, ...busy }] : [],
  );
  const [worst] = late.sort((a, b) => b.forS - a.forS);
  if (worst === undefined) return [];
  const left = leftOf(facts);
  const others = late.length > 1 ? `, and ${late.length - 1} more` : "";
  return [
    found(
      "straggler",
      "warning",
      `Batch ${worst.batch} has run for ${duration(worst.forS)}${others}; the others take ${duration(averageS)}`,
      {
        evidence: [
          ...late
            .slice(0, 3)
            .map(({ id, batch, forS }) => `worker ${id} has had batch ${batch} for ${duration(forS)}`),
          left <= late.length
            ? "no other batch is left: the job waits for it alone"
            : `${count(left, "batch")} not settled`,
        ],
        cure: "look at its items and at the log of its worker; predictor.timeout ends a predict() that hangs",
        command: `quern job logs ${apiName} ${jobId}`,
      },
    ),
  ];
}

/** Batches that are not settled. */
export function leftOf({ total, enqueuedBatches, succeeded, failedBatches }: JobFacts): number {
  return Math.max(0, (total ?? enqueuedBatches) - succeeded - failedBatches);
}

/** Seconds until the job ends, as far as the average batch tells; undefined before the first one. */
export function etaS(facts: JobFacts): number | undefined {
  const { averageS, counts } = facts;
  if (averageS === undefined || counts.running === 0) return undefined;
  return (averageS * leftOf(facts)) / counts.running;
}

function timeoutFindings(facts: JobFacts): Finding[] {
  const { timeout, apiName, jobId, counts } = facts;
  if (timeout === undefined) return [];
  const needed = etaS(facts);
  const isLast = timeout.leftS < (1 - TIMEOUT_SHARE) * timeout.allS;
  const isTooLong = needed !== undefined && needed > TIMEOUT_SHARE * timeout.leftS;
  if (!isTooLong && !isLast) return [];
  const title = `The job may not end before its timeout: ${duration(Math.max(0, timeout.leftS))} of ${duration(timeout.allS)} are left`;
  return [
    found("timeout_near", "warning", title, {
      evidence: [
        `${count(leftOf(facts), "batch")} not settled, with ${count(counts.running, "running worker")}`,
        needed === undefined ? "no batch has succeeded yet" : `they need about ${duration(needed)} more`,
      ],
      cure: "a job that timed out can be resumed for as long again, and loses no settled batch; submit the next one with a longer timeout or more workers",
      command: `quern job get ${apiName} ${jobId}`,
    }),
  ];
}

export function letterFindings({ letters, apiName, jobId }: JobFacts): Finding[] {
  if (letters === undefined || letters.messages === 0) return [];
  const { queue, messages, oldestS } = letters;
  return [
    found(
      "messages_wait",
      "warning",
      `${count(messages, "message")} could not be sent to the dead letter queue yet`,
      {
        evidence: [`queue: ${queue}`, `the oldest has waited for ${duration(oldestS)}`],
        cure: "check that the queue exists and responds; they are sent by themselves, and the job does not wait for it",
        command: `quern job logs ${apiName} ${jobId}`,
      },
    ),
  ];
}

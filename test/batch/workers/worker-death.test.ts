/** Which batch a worker's death is charged to, and as what. */
import { describe, expect, it } from "vitest";
import {
  chargedBatch,
  chargeOf,
  failureOf,
  inHandOf,
  type WorkerDeath,
} from "../../../src/batch/workers/worker-death.ts";
import type { DeliveryNote } from "../../../src/protocol/delivery-note.ts";

const NOTE: DeliveryNote = { epoch: 1, connection: 7, delivery: 3, batch_index: 5, busy: true, since: 0n };
const note = (change: Partial<DeliveryNote> = {}) => ({ ...NOTE, ...change });
const LEASED = { outstanding: [4, 5, 6], broken: undefined };

describe("the batch in hand", () => {
  it.each<[string, Parameters<typeof inHandOf>, ReturnType<typeof inHandOf>]>([
    ["is the one that the note names", [note(), 7, LEASED], { inHand: 5, isNoteLost: false }],
    [
      "may be the first of a job",
      [note({ batch_index: 0 }), 7, { ...LEASED, outstanding: [0, 1] }],
      { inHand: 0, isNoteLost: false },
    ],
    [
      "is none if predict() had returned",
      [note({ busy: false }), 7, LEASED],
      { inHand: undefined, isNoteLost: false },
    ],
    [
      "is none if the note is about an earlier connection",
      [note({ connection: 6 }), 7, LEASED],
      { inHand: undefined, isNoteLost: false },
    ],
    [
      "is none if the worker never connected",
      [note(), undefined, LEASED],
      { inHand: undefined, isNoteLost: false },
    ],
    [
      "is none if the named batch has already been reported",
      [note({ batch_index: 3 }), 7, LEASED],
      { inHand: undefined, isNoteLost: false },
    ],
    ["is unknown if the note is lost", [undefined, 7, LEASED], { inHand: undefined, isNoteLost: true }],
    [
      "is none if the worker broke the protocol, whatever the note says",
      [note(), 7, { ...LEASED, broken: "x" }],
      { inHand: undefined, isNoteLost: false },
    ],
    [
      "is none if the worker broke the protocol and left no note",
      [undefined, 7, { ...LEASED, broken: "x" }],
      { inHand: undefined, isNoteLost: false },
    ],
  ])("%s", (_, given, expected) => {
    expect(inHandOf(...given)).toEqual(expected);
  });
});

describe("a worker whose pod was taken away", () => {
  const note = { epoch: 1, connection: 7, delivery: 1, batch_index: 5, busy: true, since: 0n };
  const taken = {
    outstanding: [4, 5],
    exit: { interruption: "lost its pod" },
    timedOut: false,
    broken: undefined,
  };

  it("charges no batch", () => {
    const nothing = { inHand: undefined, isNoteLost: false, isInterruption: true };
    expect(chargeOf(note, 7, taken)).toEqual(nothing);
    expect(chargeOf(undefined, 7, taken)).toEqual(nothing);
  });

  it("charges it if Quern had killed the worker for it", () => {
    const charged = { inHand: 5, isNoteLost: false, isInterruption: false };
    expect(chargeOf(note, 7, { ...taken, timedOut: true })).toEqual(charged);
  });
});

const DEATH: WorkerDeath = {
  ...{ inHand: undefined, outstanding: [4, 5, 6], isNoteLost: false },
  ...{ exit: { signal: "SIGSEGV" }, timedOut: false, broken: undefined, isInterruption: false },
};

describe("a worker's death", () => {
  it.each<[string, Partial<WorkerDeath>, number | undefined]>([
    ["is charged to the batch in hand", { inHand: 5 }, 5],
    ["may be charged to the first batch of a job", { inHand: 0, outstanding: [0, 1] }, 0],
    ["is charged to no batch if predict() was not running", {}, undefined],
    ["is charged to no batch if its only batch had not started", { outstanding: [4] }, undefined],
    ["is charged to its only batch if the note is lost", { outstanding: [4], isNoteLost: true }, 4],
    ["is charged to no batch if the note is lost and there are several", { isNoteLost: true }, undefined],
    [
      "is charged to no batch if the worker had none, even if the note is lost",
      { outstanding: [], isNoteLost: true },
      undefined,
    ],
  ])("%s", (_, change, expected) => {
    expect(chargedBatch({ ...DEATH, ...change })).toBe(expected);
  });

  it.each<[string, Partial<WorkerDeath>, object]>([
    ["a death", {}, { cause: "death", fault: { type: "WorkerDied", evidence: { signal: "SIGSEGV" } } }],
    [
      "out of memory if the worker was killed for its memory",
      { exit: { signal: "SIGKILL", outOfMemory: "kernel" } },
      { cause: "oom", fault: { type: "OutOfMemory", evidence: { out_of_memory: "kernel" } } },
    ],
    [
      "a timeout, whatever ended the worker then",
      { timedOut: true, exit: { signal: "SIGKILL", outOfMemory: "kernel" } },
      {
        cause: "fault",
        fault: {
          type: "PredictionTimeout",
          message: "predict() took longer than predictor.timeout (250 ms) and was killed",
        },
      },
    ],
  ])("is charged as %s", (_, change, expected) => {
    expect(failureOf({ ...DEATH, ...change }, 250)).toMatchObject(expected);
  });
});

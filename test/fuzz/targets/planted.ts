/** Faults on purpose, for the fuzzer's own test: it must find them. They are no part of a run. */
import type { Target } from "../target.ts";

const common = { dictionary: ["BUG"], maxBytes: 1000, covers: /targets\/planted/ };

export const throws: Target = {
  ...common,
  run(input) {
    // One byte after the other: without its eyes on the code the fuzzer would need years.
    if (input[0] === 0x51 && input[1] === 0x75 && input[2] === 0x65) throw new TypeError("planted");
    return undefined;
  },
};

export const hangs: Target = {
  ...common,
  run(input) {
    while (input.includes("BUG"));
    return undefined;
  },
};

const kept: Buffer[] = [];

export const grows: Target = {
  ...common,
  run(input) {
    if (input.includes("BUG")) kept.push(Buffer.alloc(500 * 1024 * 1024, 1));
    return undefined;
  },
};

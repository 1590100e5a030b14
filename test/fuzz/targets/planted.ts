/** Faults on purpose, for the fuzzer's own test: it must find them. They are no part of a run. */
import type { Target } from "../target.ts";

const common = { dictionary: ["BUG", "Q"], maxBytes: 1000, covers: /targets\/planted/ };

export const throws: Target = {
  ...common,
  run(input) {
    // One after the other: what reaches the first is kept, and leads to the second.
    if (input.includes("Q") && input.includes("BUG")) throw new TypeError("planted");
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

const kept: { bytes?: Buffer } = {};

export const grows: Target = {
  ...common,
  run(input) {
    if (input.includes("BUG")) kept.bytes ??= Buffer.alloc(500 * 1024 * 1024, 1);
    return undefined;
  },
};

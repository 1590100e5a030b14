import { defineConfig } from "vitest/config";

/** Tests start real processes on a small machine: two files at a time, and generous time limits that only a hang reaches. */
export default defineConfig({
  test: {
    // What needs TensorFlow is a stage of its own (`node scripts/test.mjs --tensorflow`).
    include: [
      process.env.QUERN_TEST_TENSORFLOW === undefined ? "test/**/*.test.ts" : "test/**/*.tensorflow.ts",
    ],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    pool: "forks",
  },
});

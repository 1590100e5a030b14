import { defineConfig } from "vitest/config";

/** What needs TensorFlow, or a kernel of its own, is a stage of its own (`node scripts/test.mjs --tensorflow`, `--own-kernel`). */
const SUITES: Record<string, string> = {
  "": "test/**/*.test.ts",
  tensorflow: "test/**/*.tensorflow.ts",
  "own-kernel": "test/**/*.cgroup.ts",
};

/** Tests start real processes on a small machine: two files at a time, and generous time limits that only a hang reaches. */
export default defineConfig({
  test: {
    include: [SUITES[process.env.QUERN_TEST_SUITE ?? ""]!],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    pool: "forks",
  },
});

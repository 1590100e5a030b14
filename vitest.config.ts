import { defineConfig } from "vitest/config";

/** What needs TensorFlow, or a kernel of its own, is a stage of its own (`node scripts/test.mjs --tensorflow`, `--own-kernel`). */
const SUITES: Record<string, string> = {
  "": "test/**/*.test.ts",
  tensorflow: "test/**/*.tensorflow.ts",
  "own-kernel": "test/**/*.cgroup.ts",
};

/** Tests start real processes, and wait for them more than they compute: three files at a time on two cores. Only a hang reaches the time limits. */
export default defineConfig({
  test: {
    include: [SUITES[process.env.QUERN_TEST_SUITE ?? ""]!],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 3,
    pool: "forks",
  },
});

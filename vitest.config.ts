import { defineConfig } from "vitest/config";

/** Tests start real processes on a small machine: two files at a time, and generous time limits that only a hang reaches. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    pool: "forks",
  },
});

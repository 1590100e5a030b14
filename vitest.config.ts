import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What needs TensorFlow, a kernel of its own or a cluster is a stage of its own (`node scripts/test.mjs --tensorflow`, `--own-kernel`; `npm run test:cluster`). */
const SUITES: Record<string, string> = {
  "": "test/**/*.test.ts",
  tensorflow: "test/**/*.tensorflow.ts",
  "own-kernel": "test/**/*.cgroup.ts",
  cluster: "test/**/*.cluster.ts",
};

/** As in test/harness/eventually.ts. */
const LIMIT_MS = 120_000 * Number(process.env.QUERN_TEST_PATIENCE ?? 1);

/** These take half a minute or more, although they are short: they mostly wait. */
const LONG = [
  "test/scenarios/batch/kill-points.test.ts",
  "test/fuzz/seeds.test.ts",
  "test/scenarios/operations/postgres.test.ts",
  "test/scenarios/operations/random-kills.test.ts",
  "test/scenarios/operations/restarts.test.ts",
  "test/scenarios/operations/standby.test.ts",
  "test/scenarios/applications/application-data.test.ts",
  "test/former-examples/former-examples.test.ts",
  "test/conformance/object-store.test.ts",
  "test/hostile/large-configurations.test.ts",
];
const isLong = ({ moduleId }: TestSpecification) => LONG.some((file) => moduleId.endsWith(`/${file}`));

/** Vitest starts large files first. The long ones come before them, so that none runs alone at the end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Tests start real processes, and wait for them more than they compute: three files at a time on two cores. Only a hang reaches the time limits. */
export default defineConfig({
  test: {
    include: [SUITES[process.env.QUERN_TEST_SUITE ?? ""]!],
    globalSetup: process.env.QUERN_TEST_DATABASE === "postgres" ? ["test/harness/postgres-setup.ts"] : [],
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    maxWorkers: 3,
    pool: "forks",
    sequence: { sequencer: LongFirst },
  },
});

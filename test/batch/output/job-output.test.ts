/** The order in which the output of a job begins and closes. */
import { expect, it } from "vitest";
import { JobOutput, type JobOutputOptions } from "../../../src/batch/output/job-output.ts";
import { NO_ROWS } from "../../../src/batch/rows/rows-place.ts";

/** An output of one batch, whose index is read until `read` is called. */
function output() {
  const order: string[] = [];
  let read = () => {};
  const reading = new Promise<void>((resolve) => {
    read = resolve;
  });
  const close = (what: string) => async () => void order.push(`closed ${what}`);
  const index = {
    read: async () => {
      await reading;
      order.push("read");
      return [NO_ROWS];
    },
    close: close("index"),
  };
  const spool = { files: async () => [1], remove: async () => {}, close: close("spool") };
  const db = { all: async () => [] };
  const options = { db, index, spool, jobId: "job" } as unknown as JobOutputOptions;
  return { output: new JobOutput(options), order, read };
}

it("closes only after it has begun, because that reads its files", async () => {
  const { output: own, order, read } = output();
  const begun = own.begin(1, async () => {});
  const closed = own.close();
  // As far as it comes without the index.
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual([]);
  read();
  await Promise.all([begun, closed]);
  expect(order).toEqual(["read", "closed spool", "closed index"]);
});

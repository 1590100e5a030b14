/** Who closes the output of a run that ends while it opens. */
import { expect, it } from "vitest";
import { RunOutput } from "../../../src/batch/output/run-output.ts";

/** An output that counts how often it was closed, and is open once `open` is called. */
function opening() {
  const output = {
    closed: 0,
    close: async () => {
      output.closed++;
    },
  };
  let resolve: (output: { close: () => Promise<void>; closed: number } | undefined) => void = () => {};
  const promise = new Promise<typeof output | undefined>((resolved) => {
    resolve = resolved;
  });
  return { output, promise, open: () => resolve(output), openNone: () => resolve(undefined) };
}

it("is closed with the run", async () => {
  const { output, promise, open } = opening();
  const own = new RunOutput<typeof output>();
  open();
  expect(await own.opened(promise)).toBe(output);
  expect(output.closed).toBe(0);
  await own.close();
  expect(output.closed).toBe(1);
});

it("is closed as soon as it is open, if the run ended before", async () => {
  const { output, promise, open } = opening();
  const own = new RunOutput<typeof output>();
  const opened = own.opened(promise);
  await own.close();
  expect(output.closed).toBe(0);
  open();
  await opened;
  expect(output.closed).toBe(1);
});

it("does not exist for a job without one", async () => {
  const { output, promise, openNone } = opening();
  const own = new RunOutput<typeof output>();
  const opened = own.opened(promise);
  await own.close();
  openNone();
  expect(await opened).toBeUndefined();
  await own.close();
});

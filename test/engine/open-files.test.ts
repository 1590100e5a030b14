/** Which workers may start while this process may open few files. */
import { expect, it } from "vitest";
import { OpenFiles } from "../../src/engine/open-files.ts";

it("keeps files for requests, and a tenth of all for the first worker of each job", () => {
  const files = new OpenFiles({ max: 128, count: () => 30 });
  const started = { more: 0, first: 0 };
  while (files.take(false) !== undefined) started.more++;
  while (files.take(true) !== undefined) started.first++;
  expect([files.kept, started]).toEqual([48, { more: 7, first: 3 }]);
});

it("counts what a worker has opened itself once it is set up, and nothing once it is gone", () => {
  let open = 63;
  const files = new OpenFiles({ max: 128, count: () => open });
  const worker = files.take(false)!;
  expect(files.hasSpaceFor(1, false)).toBe(false);
  open = 62;
  worker.isSetUp();
  expect(files.hasSpaceFor(1, false)).toBe(true);
  worker.isSetUp();
  worker.end();
  worker.end();
  open = 63;
  files.take(false)!.end();
  expect(files.hasSpaceFor(1, false)).toBe(true);
});

it("bounds nothing where the system does not say how many files may be open", () => {
  const files = new OpenFiles({ max: Number.POSITIVE_INFINITY, count: () => 0 });
  expect(files.hasSpaceFor(10_000, false)).toBe(true);
});

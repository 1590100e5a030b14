import { expect, it } from "vitest";
import { inBackground } from "../../src/base/boundary.ts";

it("work that fails in the background is logged and ends nothing else", async () => {
  // An unhandled rejection would fail this run.
  const told = await new Promise<Error>((resolve) =>
    inBackground(Promise.reject(new Error("lost")), (error) => {
      resolve(error);
      throw new Error("and so is what fails while it is told");
    }),
  );
  expect(told.message).toBe("lost");
  inBackground(Promise.reject(new Error("without anybody's ear")));
  await new Promise((resolve) => setImmediate(resolve));
});

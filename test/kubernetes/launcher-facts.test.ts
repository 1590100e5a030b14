/** What a launcher says about its worker. User code in its pod may say it in its place. */
import { expect, it } from "vitest";
import { readFacts } from "../../src/kubernetes/pods/launcher.ts";

const FAILURE = {
  ...{ message: "no index", is_final: false, is_of_environment: true, step: "requirements.txt" },
  ...{ output: ["a line"], python: "3.12", for_s: 2.5 },
};
const FACTS = { state: "failed", reason: "no index", starts: 0, pid: null, last_exit: null, note: null };
const read = (facts: unknown) => readFacts(JSON.stringify(facts));

it("is read as it is", () => {
  for (const failure of [FAILURE, { ...FAILURE, step: null, python: null }, null])
    expect(read({ ...FACTS, failure })).toEqual({ ...FACTS, failure });
  expect(read({ ...FACTS, state: "ready", pid: 7 })).toEqual({ ...FACTS, state: "ready", pid: 7 });
});

it.each(Object.keys(FAILURE))("is no answer if %s of its failure is something else", (field) => {
  expect(read({ ...FACTS, failure: { ...FAILURE, [field]: { length: 1 } } })).toBeUndefined();
});

it("is no answer if it is something else altogether", () => {
  for (const facts of [null, 1, [], {}, { ...FACTS, starts: "1" }, { ...FACTS, failure: 1 }])
    expect(read(facts)).toBeUndefined();
});

it("of an image that does not tell why is a failure that may pass", () => {
  expect(read(FACTS)?.failure).toMatchObject({ message: "no index", is_final: false, for_s: 60 });
  expect(read({ ...FACTS, state: "installing" })?.failure).toBeUndefined();
});

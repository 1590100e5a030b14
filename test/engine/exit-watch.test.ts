/** The exit of a process that has several owners, one after the other. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { ExitWatch } from "../../src/engine/exit-watch.ts";
import { fakeProcess } from "../harness/fake-worker.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("is told to the last owner only, and also to one that comes after it", async () => {
  const process = fakeProcess("/nowhere");
  const watch = new ExitWatch(process);
  const told: string[] = [];
  for (const owner of ["first", "second"]) watch.follow(({ signal }) => told.push(`${owner} ${signal}`));
  process.kill();
  await turn();
  watch.follow(() => told.push("late"));
  expect(told).toEqual(["second SIGKILL"]);
  await turn();
  expect(told).toEqual(["second SIGKILL", "late"]);
});

it("keeps no former owner in memory", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const watch = new ExitWatch(fakeProcess("/nowhere"));
  const owners = Array.from({ length: 10 }, () => {
    const owner = { hasEnded: false };
    watch.follow(() => {
      owner.hasEnded = true;
    });
    return new WeakRef(owner);
  });
  await turn();
  collect();
  expect(owners.filter((owner) => owner.deref() !== undefined)).toHaveLength(1);
});

/** Selections in memory: whose they are, how many there are, and how long they stay. */
import { describe, expect, it } from "vitest";
import {
  SELECTED_IDS_MAX,
  SELECTED_JOBS_MAX,
  SELECTION_KEPT_MS,
  SELECTIONS_MAX,
  SELECTIONS_OF_A_KEY_MAX,
} from "../../../src/contracts/limits/responses.ts";
import { FrozenSelections } from "../../../src/control/dashboard/frozen-selections.ts";

const jobs = (count: number) => ({ kind: "jobs" as const, ids: new Array<string>(count).fill("id") });

describe("frozen selections", () => {
  it("belong to whoever made them, for ten minutes", () => {
    const all = new FrozenSelections();
    const id = all.freeze("me", jobs(2), 1_000);
    expect(all.find(id, "me", 1_000)?.ids).toHaveLength(2);
    expect(all.find(id, "other", 1_000)).toBeUndefined();
    expect(all.find(id, "me", 1_000 + SELECTION_KEPT_MS)).toBeUndefined();
  });

  it("are replaced by later ones of the same key, the oldest first", () => {
    const all = new FrozenSelections();
    const others = all.freeze("other", jobs(1), 0);
    const mine = Array.from({ length: SELECTIONS_OF_A_KEY_MAX + 1 }, () => all.freeze("me", jobs(1), 0));
    expect(mine.map((id) => all.find(id, "me", 0) !== undefined)).toEqual([
      false,
      ...new Array<boolean>(SELECTIONS_OF_A_KEY_MAX).fill(true),
    ]);
    expect(all.find(others, "other", 0)).toBeDefined();
  });

  it("of one key hold no more ids than one selection may have: the oldest goes", () => {
    const all = new FrozenSelections();
    const [first, second] = [all.freeze("me", jobs(SELECTED_JOBS_MAX - 1), 0), all.freeze("me", jobs(1), 0)];
    expect(all.find(first, "me", 0)).toBeDefined();
    const third = all.freeze("me", jobs(2), 0);
    expect([first, second, third].map((id) => all.find(id, "me", 0) !== undefined)).toEqual([
      false,
      true,
      true,
    ]);
  });

  it("are refused while the others hold as much, and else whoever holds most loses the oldest", () => {
    const all = new FrozenSelections();
    const owners = Array.from({ length: SELECTED_IDS_MAX / SELECTED_JOBS_MAX }, (_, n) => `other ${n}`);
    const theirs = owners.map((owner) => all.freeze(owner, jobs(SELECTED_JOBS_MAX), 0));
    expect(() => all.freeze("me", jobs(SELECTED_JOBS_MAX), 0)).toThrow("select fewer");
    expect(all.find(all.freeze("me", jobs(1), 0), "me", 0)).toBeDefined();
    const left = theirs.filter((id, n) => all.find(id, owners[n]!, 0) !== undefined);
    expect(left).toHaveLength(owners.length - 1);
  });

  it("are bounded in number, however many addresses make empty ones, and others keep theirs", () => {
    const all = new FrozenSelections();
    const mine = [all.freeze("me", jobs(1), 0), all.freeze("you", jobs(1), 0)];
    const empty = Array.from({ length: SELECTIONS_MAX + 10 }, (_, n) =>
      all.freeze(`address ${n}`, jobs(0), 0),
    );
    expect(mine.map((id, n) => all.find(id, ["me", "you"][n]!, 0) !== undefined)).toEqual([true, true]);
    const kept = empty.filter((id, n) => all.find(id, `address ${n}`, 0) !== undefined);
    expect(kept).toHaveLength(SELECTIONS_MAX - 2);
    expect(kept.at(-1)).toBe(empty.at(-1));
  });

  it("that are in use are not dropped for others", async () => {
    const all = new FrozenSelections();
    const id = all.freeze("me", jobs(SELECTED_JOBS_MAX), 0);
    let end = () => {};
    const use = all.use(id, () => new Promise<void>((resolve) => (end = resolve)));
    expect(() => all.freeze("me", jobs(1), 0)).toThrow("actions on your selections");
    end();
    await use;
    expect(all.freeze("me", jobs(1), 0)).toBeDefined();
  });

  it("take one action at a time, and stay until it has ended", async () => {
    const all = new FrozenSelections();
    const id = all.freeze("me", jobs(1), 0);
    let end = () => {};
    const first = all.use(id, () => new Promise<void>((resolve) => (end = resolve)));
    await expect(all.use(id, async () => {})).rejects.toMatchObject({ code: "wrong_state" });
    expect(all.find(id, "me", SELECTION_KEPT_MS)).toBeDefined();
    end();
    await first;
    expect(all.find(id, "me", SELECTION_KEPT_MS)).toBeUndefined();
    await expect(all.use(id, async () => {})).rejects.toMatchObject({ code: "selection_not_found" });
  });
});

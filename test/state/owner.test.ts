/** Whose state a prefix is: the database and the prefix name each other by a token. */
import { describe, expect, it } from "vitest";
import { type Ownership, ownershipOf } from "../../src/state/owner.ts";

const object = (token: string) => ({ token, instance_id: "i", etag: "e" });
const recorded = (state_token: string, state_next = "") => ({ state_token, state_next, state_address: "" });
const ours = (condition: "absent" | { etag: string }, isFirst = false): Ownership => ({
  kind: "ours",
  condition,
  isFirst,
});

describe("the owner", () => {
  it.each([
    ["the database's, if both are new", recorded(""), undefined, true, ours("absent", true)],
    [
      "the database's, if others have left objects there",
      recorded(""),
      undefined,
      false,
      ours("absent", true),
    ],
    ["the database's, if both have the token", recorded("a"), object("a"), false, ours({ etag: "e" })],
    [
      "the database's, if a start was cut off after it wrote the object",
      recorded("a", "b"),
      object("b"),
      false,
      ours({ etag: "e" }),
    ],
    [
      "the database's, if the first start was cut off after it wrote the object",
      recorded("", "b"),
      object("b"),
      false,
      ours({ etag: "e" }),
    ],
    [
      "the database's, if a start was cut off before it wrote the object",
      recorded("a", "b"),
      object("a"),
      false,
      ours({ etag: "e" }),
    ],
    ["the database's, if a person has removed the object", recorded("a"), undefined, false, ours("absent")],
    [
      "another database's, if this one is new",
      recorded(""),
      object("a"),
      false,
      { kind: "refused", why: "another_database" },
    ],
    [
      "another database's, if the original of this copy has started since",
      recorded("a"),
      object("c"),
      false,
      { kind: "refused", why: "another_database" },
    ],
    [
      "nobody's, if it is empty and the database has a state",
      recorded("a"),
      undefined,
      true,
      { kind: "refused", why: "nothing_there" },
    ],
  ] as const)("of a prefix is %s", (_, database, found, isEmpty, verdict) => {
    expect(ownershipOf(database, found, isEmpty)).toEqual(verdict);
  });
});

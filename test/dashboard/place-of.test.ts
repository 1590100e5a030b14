/** The pages that findings link to, by the commands that they name. */
import { describe, expect, it } from "vitest";
import { placeOf } from "../../src/dashboard/parts/place-of.ts";

describe("the page that shows what a command prints", () => {
  it.each([
    ["quern logs iris", ["apis", "iris"], { tab: "logs" }],
    ["quern rollback iris", ["apis", "iris"], { tab: "versions" }],
    ["quern rollback iris 0123", ["apis", "iris"], { tab: "versions" }],
    ["quern explain iris --at 2026-11-28T13:05Z", ["apis", "iris"], { at: "2026-11-28T13:05Z" }],
    ["quern explain big j1", ["jobs", "big", "j1"], undefined],
    ["quern job get big j1", ["jobs", "big", "j1"], undefined],
    ["quern job logs big j1", ["jobs", "big", "j1"], { tab: "logs" }],
    ["quern job failures big j1 --error 'no image'", ["jobs", "big", "j1"], { tab: "failures" }],
    ["quern job redrive big j1 --like 8", ["jobs", "big", "j1"], { tab: "failures" }],
  ])("of `%s` is %j %j", (command, segments, query) => {
    const place = placeOf(command)!;
    expect([place.segments, place.query]).toEqual([segments, query]);
  });

  it("is that of the two versions that the finding compares", () => {
    const evidence = ["by admin-token", "version 60638c38b2b8… replaced ee1541314727…"];
    expect(placeOf("quern rollback iris ee1541314727190911195c10", evidence)!.query).toEqual({
      ...{ tab: "versions", from: "ee1541314727", to: "60638c38b2b8" },
    });
  });

  it.each([null, "quern patch quern.yaml", "quern doctor", "quern series iris --since 24h"])(
    "of %s is none",
    (command) => {
      expect(placeOf(command)).toBeUndefined();
    },
  );
});

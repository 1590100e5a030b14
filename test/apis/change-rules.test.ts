/** The conditions under which a deployed API may be changed, and what a user is told if they do not hold. */
import { describe, expect, it } from "vitest";
import { assertHasReplicas, assertNotSplitTo, assertOwn } from "../../src/apis/change-rules.ts";
import type { AnyVersion } from "../../src/apis/records/api-rows.ts";
import { ServiceError } from "../../src/contracts/errors.ts";

const version = (kind: string, name: string, apis: string[] = []): AnyVersion => {
  const config = {
    kind,
    name,
    ...(kind === "TrafficSplitter" ? { apis: apis.map((api) => ({ name: api })) } : {}),
  };
  return { name, config } as unknown as AnyVersion;
};

/** The message of the refusal; undefined if the change is allowed. */
function refusalOf(assertion: () => void): string | undefined {
  try {
    assertion();
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect(error.code).toBe("wrong_state");
    return error.message;
  }
}

describe("an API of an application", () => {
  it.each(["deleted", "exported", "rolled back"] as const)("cannot be %s alone", (what) => {
    expect(refusalOf(() => assertOwn("shop.serve", what))).toBe(
      `shop.serve cannot be ${what} alone: it belongs to the application shop; deploy that, or delete it (\`quern delete -a shop\`)`,
    );
    expect(refusalOf(() => assertOwn("serve", what))).toBeUndefined();
  });
});

describe("an API that a TrafficSplitter uses", () => {
  const deployed = [
    version("RealtimeAPI", "a"),
    version("RealtimeAPI", "b"),
    version("BatchAPI", "c"),
    version("TrafficSplitter", "both", ["a", "b"]),
    version("TrafficSplitter", "one", ["b"]),
  ];

  it.each<[string, string | undefined]>([
    ["a", "both"],
    ["b", "both, one"],
    ["c", undefined],
    ["one", undefined],
    ["none", undefined],
  ])("cannot be deleted (%s is used by %s)", (name, users) => {
    expect(refusalOf(() => assertNotSplitTo(name, deployed))).toBe(
      users &&
        `${name} cannot be deleted: it is used by the TrafficSplitter ${users}; delete that first, or take ${name} out of it`,
    );
  });
});

describe("only an API with replicas of its own", () => {
  it.each<[string, AnyVersion, string | undefined]>([
    ["a RealtimeAPI", version("RealtimeAPI", "a"), undefined],
    [
      "not a BatchAPI",
      version("BatchAPI", "a"),
      "a is a BatchAPI: it has no replicas to refresh; each job starts its own workers",
    ],
    [
      "not a TrafficSplitter",
      version("TrafficSplitter", "both", ["a", "b"]),
      "both is a TrafficSplitter: it has no replicas to refresh; refresh the APIs that it sends to: `quern refresh a`, `quern refresh b`",
    ],
  ])("can be refreshed: %s", (_, given, expected) => {
    expect(refusalOf(() => assertHasReplicas(given))).toBe(expected);
  });
});

import { expect, it } from "vitest";
import { describeStandby } from "../../src/parent/describe-standby.ts";

it("a standby says who has the database, since when, and what to do if it was not wanted", () => {
  const active = { host: "one", place: "http://h:1, data directory /d", since: "2026-01-01T00:00:00Z" };
  expect(describeStandby(active)).toBe(
    "quern is a standby: the server on one (http://h:1, data directory /d) has the database since 2026-01-01T00:00:00Z. This server takes over when that one ends.\n" +
      "  If you did not want a standby, stop this server, or give it a --database and a --state of its own.",
  );
});

it("a standby of a server that says nothing about itself does not invent anything", () => {
  expect(describeStandby({ host: "", place: "", since: "" })).toMatch(
    /^quern is a standby: another server has the database\. This server takes over/,
  );
});

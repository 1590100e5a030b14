/** Which APIs of a configuration are deployed, as which versions, and what the user is told. */
import { describe, expect, it } from "vitest";
import { type ParsedApi, readConfig } from "../../../src/apis/config/parse-config.ts";
import { planApi, selectApis } from "../../../src/apis/deploy/plan-deployment.ts";
import { type AnyVersion, identityOf } from "../../../src/apis/records/api-rows.ts";
import { ServiceError } from "../../../src/contracts/errors.ts";

const apisOf = (...entries: object[]): ParsedApi[] => {
  const { apis, errors } = readConfig(JSON.stringify(entries), "quern.yaml");
  expect(errors).toEqual([]);
  return apis;
};

const predictor = { path: "predictor.py" };
const A = { name: "a", predictor };
const B = { name: "b", kind: "BatchAPI", predictor, networking: { endpoint: "/jobs/b" } };
const SPLITTER = {
  ...{ name: "s", kind: "TrafficSplitter" },
  apis: [
    { name: "a", weight: 90 },
    { name: "c", weight: 10 },
  ],
};
const [a, b, splitter] = apisOf(A, B, SPLITTER) as [ParsedApi, ParsedApi, ParsedApi];
const FILES = { project_id: "project", directory: "/projects/project" };
const deployedWith = (api_id: string) => ({ api_id }) as AnyVersion;
const idsOf = ({ config, configText }: ParsedApi, projectId: string) =>
  identityOf(config, configText, projectId);

describe("the APIs that are deployed", () => {
  it.each<[string, string[], string[]]>([
    ["are all of the configuration if none is named", [], ["a", "b", "s"]],
    ["are those that are named", ["b"], ["b"]],
    ["are in the order of the configuration", ["s", "a"], ["a", "s"]],
  ])("%s", (_, only, expected) => {
    expect(selectApis([a, b, splitter], only).map(({ config }) => config.name)).toEqual(expected);
  });

  it("must all be in the configuration", () => {
    const select = () => selectApis([a, b], ["x", "a", "y"]);
    const message = "the configuration has no API x, y; it has a, b";
    expect(select).toThrow(new ServiceError("invalid_request", message));
    expect(select).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });
});

describe("the plan for an API", () => {
  const plan = (api: ParsedApi, deployed?: AnyVersion) => planApi({ api, deployed, files: FILES });

  it("has the ids of its content and what the user is told", () => {
    const ids = { ...idsOf(b, "project"), project_id: "project" };
    expect(plan(b)).toEqual({
      ...{ api: b, ids, isUnchanged: false },
      answer: {
        ...{ api: "b", kind: "BatchAPI", api_id: ids.api_id },
        ...{ message: "created b (BatchAPI)", endpoint: "/jobs/b" },
      },
    });
    expect(plan(a).answer.endpoint).toBe("/a");
  });

  it.each<[string, ParsedApi, string]>([
    ["a RealtimeAPI", a, "creating a (RealtimeAPI)"],
    ["a BatchAPI", b, "created b (BatchAPI)"],
    ["a TrafficSplitter", splitter, "created s (TrafficSplitter)"],
  ])("says whether %s is new, changed or unchanged", (_, api, created) => {
    const changed = plan(api, deployedWith("former"));
    const same = plan(api, deployedWith(changed.ids.api_id));
    expect(plan(api).answer.message).toBe(created);
    expect(changed.answer.message).toBe(created.replace("creat", "updat"));
    expect(same.answer.message).toBe(`${api.config.name} is up to date`);
    expect([plan(api), changed, same].map(({ isUnchanged }) => isUnchanged)).toEqual([false, false, true]);
  });

  it("gives a TrafficSplitter an id that does not depend on the project's files", () => {
    expect(plan(splitter).ids).toEqual({ ...idsOf(splitter, ""), project_id: "" });
  });
});

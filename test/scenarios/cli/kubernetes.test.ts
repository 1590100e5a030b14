/** `quern export kubernetes`: what it prints, and that the command and settings in it start the server. */
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { podChoice } from "../../../src/cli/kubernetes/export.ts";
import { manifest } from "../../../src/cli/kubernetes/manifest.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
const OPTIONS = { namespace: "ml", image: "quern:1", storage: "10Gi", cpus: "2", memory: "4Gi" };

describe("quern export kubernetes", () => {
  it("prints YAML of objects in the namespace", () => {
    const { code, out } = server.cli(["export", "kubernetes", "--namespace", "ml", "--image", "quern:1"]);
    const objects = parseAllDocuments(out).map((document) => document.toJS());
    expect([code, objects]).toEqual([0, JSON.parse(JSON.stringify(manifest(podChoice(OPTIONS))))]);
    expect(objects.map(({ kind, metadata }) => [kind, metadata.namespace])).toEqual([
      ["ServiceAccount", "ml"],
      ["NetworkPolicy", "ml"],
      ["Service", "ml"],
      ["StatefulSet", "ml"],
    ]);
  });

  it.each([
    ["--namespace", "Ml"],
    ["--image", "a b"],
    ["--storage", "10GB"],
    ["--cpus", "none"],
    ["--memory", "0Gi"],
    ["--database-secret", "a_b"],
  ])("refuses %s %s", (option, value) => {
    const { code, err } = server.cli(["export", "kubernetes", option, value]);
    expect([code, err]).toEqual([2, expect.stringContaining(`${option} "${value}" is not`)]);
  });
});

describe("the pod", () => {
  const [account, , , set] = manifest(podChoice({ ...OPTIONS, databaseSecret: "postgres" }));

  it("has no token of its ServiceAccount and meets the restricted Pod Security Standard", () => {
    expect(account).toMatchObject({ automountServiceAccountToken: false });
    expect(set).toMatchObject({
      spec: {
        replicas: 1,
        template: {
          spec: {
            automountServiceAccountToken: false,
            securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
            containers: [
              {
                args: ["up", "--continue-jobs"],
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ["ALL"] },
                },
              },
            ],
          },
        },
      },
    });
  });

  it("reserves the memory of the workers and of the server, and takes the database from the Secret", () => {
    const QUERN_DATABASE = { valueFrom: { secretKeyRef: { name: "postgres", key: "url" } } };
    const env = expect.arrayContaining([
      { name: "QUERN_MEMORY", value: "4096Mi" },
      { name: "QUERN_DATABASE", ...QUERN_DATABASE },
    ]);
    const resources = { requests: { cpu: "2.25", memory: "4864Mi" }, limits: { memory: "4864Mi" } };
    expect(set).toMatchObject({ spec: { template: { spec: { containers: [{ env, resources }] } } } });
  });

  it("has more time to end than the drain takes", () => {
    expect(set).toMatchObject({ spec: { template: { spec: { terminationGracePeriodSeconds: 60 } } } });
  });
});

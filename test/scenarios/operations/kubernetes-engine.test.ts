/** `quern up --engine kubernetes` without a cluster: what it refuses at its start. */
import { afterAll, describe, expect, it } from "vitest";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
afterAll(() => server.stop());

const ENGINE = ["up", "--listen", "127.0.0.1:0", "--engine", "kubernetes"];
const DATABASE = "postgres://quern@127.0.0.1:1/quern";

describe("the Kubernetes engine is refused at the start", () => {
  it("on SQLite, with the reason", async () => {
    const { code, err } = await server.cliBeside(ENGINE, { QUERN_DATABASE: "" });
    expect([code, err]).toEqual([
      2,
      expect.stringContaining("--engine kubernetes needs --database postgres://"),
    ]);
    expect(err).toContain("is lost with it while the pods go on");
  });

  it("without an image of workers", async () => {
    const { code, err } = await server.cliBeside(ENGINE, { QUERN_DATABASE: DATABASE });
    expect([code, err]).toEqual([2, expect.stringContaining("--engine kubernetes needs --worker-image")]);
  });

  it.each([
    [["--engine", "nomad"], "--engine must be local or kubernetes"],
    [["--pod-url", "http://quern.ml.svc:8423"], "--pod-url must be a URL such as https://quern.ml.svc:8423"],
    [["--pod-listen", "8423"], "--pod-listen must be HOST:PORT"],
  ])("with %j", async (args, message) => {
    const { code, err } = await server.cliBeside([...ENGINE, ...args], { QUERN_DATABASE: DATABASE });
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("quern export kubernetes --engine kubernetes", () => {
  it("needs a database that outlives the pod", async () => {
    const { code, err } = await server.cliBeside(["export", "kubernetes", "--engine", "kubernetes"]);
    expect([code, err]).toEqual([2, expect.stringContaining("needs --database-secret")]);
  });

  it("names the engine and the image of workers", async () => {
    const args = ["export", "kubernetes", "--engine", "kubernetes", "--database-secret", "postgres"];
    const { out } = await server.cliBeside(args);
    expect(out).toContain("value: kubernetes");
    expect(out).toMatch(/name: QUERN_WORKER_IMAGE\s+value: quern-worker:\d/);
  });
});

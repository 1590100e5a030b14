/** A store whose listing never ends, as the data of an application: only this application fails, and says why. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applicationServer, IrisExample, lightModel } from "../harness/iris-example.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { ECHO, project } from "../harness/projects.ts";
import type { TestServer } from "../harness/server.ts";

/** Keys as long as they may be. */
const entries = (page: number) =>
  Array.from({ length: 1000 }, (_, n) => {
    const key = `iris/${page}-${n}-`.padEnd(1000, "k");
    return `<Contents><Key>${key}</Key><Size>1</Size></Contents>`;
  }).join("");

describe("an application whose store lists without end", () => {
  let pages = 0;
  const store = createServer((_, response) => {
    pages++;
    const token = `<IsTruncated>true</IsTruncated><NextContinuationToken>t${pages}</NextContinuationToken>`;
    response.setHeader("content-type", "application/xml");
    response.end(`<ListBucketResult>${token}${entries(pages)}</ListBucketResult>`);
  });
  let server: TestServer;
  let iris: IrisExample;
  beforeAll(async () => {
    await once(store.listen(0, "127.0.0.1"), "listening");
    server = applicationServer({
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
      ...{ AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b", AWS_REGION: "us-east-1" },
    });
    iris = new IrisExample(server);
    await server.start();
    server.deploy(project(ECHO));
  });
  afterAll(async () => {
    await server.stop();
    store.close();
    store.closeAllConnections();
  });

  it("fails alone, with the cure, and asks for nothing at the next start", async () => {
    const controller = server.child("controller");
    resetPeak(controller);
    iris.write(lightModel(), {
      file: "resources/environments.yaml",
      from: "path: iris.csv",
      to: "path: s3://bucket/iris",
    });
    const cure = "there are more than 10000 files at s3://bucket/iris; combine them into larger ones";
    await expect(server.deployBeside(iris.directory)).rejects.toThrow(cure);
    expect(server.child("controller")).toBe(controller);
    expect(peakMiB(controller)).toBeLessThan(500);
    expect((await server.post("/echo", { a: 1 })).status).toBe(200);
    const asked = pages;
    await server.stopProcesses();
    await server.start();
    expect((await server.post("/echo", { a: 1 })).status).toBe(200);
    expect((await iris.resource("dnn")).status).not.toBe("ready");
    expect(pages).toBe(asked);
  });
});

/** An application of a server whose files are in a bucket (`--state`), after the loss of its data directory. */
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import {
  applicationServer,
  IrisExample,
  lightModel,
  SETOSA,
  SETOSA_PREDICTION,
} from "../../harness/iris-example.ts";
import { killAllOf } from "../../harness/kill-server.ts";
import { isPostgresInstalled, Postgres } from "../../harness/postgres.ts";
import type { TestServer } from "../../harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "../../harness/stores.ts";

describe.runIf(isPostgresInstalled && isS3Installed)("an application whose results are in a bucket", () => {
  let postgres: Postgres;
  let s3: TestS3;
  let server: TestServer;
  let iris: IrisExample;
  beforeAll(async () => {
    postgres = await Postgres.start();
    s3 = await startS3();
    server = applicationServer({
      ...s3.env,
      QUERN_DATABASE: postgres.url,
      QUERN_STATE: `${s3.base}/state`,
    });
    iris = new IrisExample(server);
    await server.start();
    iris.write(lightModel());
    const { code, err } = await server.cliBeside(["deploy", iris.directory, "--wait"]);
    expect([code, err]).toEqual([0, expect.any(String)]);
  }, 200_000);
  afterAll(async () => {
    await server.stop();
    await s3.stop();
    postgres.stop();
  });

  const computed = async () =>
    (await iris.state()).resources
      .filter(({ kind }) => kind !== "api")
      .map(({ name, status, started_time }) => [name, status, started_time]);

  it("serves again after its directory is lost, and computes nothing again", async () => {
    const before = await computed();
    await killAllOf(server);
    rmSync(server.dataDir, { recursive: true });
    await server.start();
    await eventually(
      "it serves",
      async () => {
        const response = await server.post("/iris/iris-type", JSON.parse(SETOSA)).catch(() => undefined);
        if (response?.status !== 200) return false;
        expect(await response.json()).toMatchObject({ classification_predictions: [SETOSA_PREDICTION] });
        return true;
      },
      60_000,
    );
    await eventually("its results are there", async () => {
      expect((await computed()).every(([, status]) => status === "ready")).toBe(true);
      return true;
    });
    expect(await computed()).toEqual(before);
  });
});

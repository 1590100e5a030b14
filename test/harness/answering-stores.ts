/** A store of each kind, all served by one HTTP server that gives the answers of a test. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { AzureStore } from "../../src/object-store/backends/azure-store.ts";
import { GcsStore } from "../../src/object-store/backends/gcs-store.ts";
import { S3Store } from "../../src/object-store/backends/s3-store.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { TestServer } from "./server.ts";

export type Scheme = "s3" | "gs" | "az";

export interface AnsweringStores extends Record<Scheme, ObjectStore> {
  close(): void;
}

/** SQS is at the same address. Clients find it, and their keys, in the environment of this process. */
export async function answeringStores(answer: RequestListener): Promise<AnsweringStores> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_ENDPOINT_URL_SQS: endpoint,
    AWS_ACCESS_KEY_ID: "a",
    AWS_SECRET_ACCESS_KEY: "b",
    AWS_REGION: "us-east-1",
  });
  const connectionString = `DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;BlobEndpoint=${endpoint}/a`;
  const none = { account: undefined, key: undefined, sasToken: undefined };
  return {
    s3: new S3Store({ endpoint }),
    gs: new GcsStore({ emulator: endpoint }),
    az: new AzureStore({ connectionString, ...none }),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A server, not yet started, for which `store` answers all requests to S3. */
export async function serverOver(store: Server): Promise<TestServer> {
  await once(store.listen(0, "127.0.0.1"), "listening");
  return new TestServer({
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    AWS_ACCESS_KEY_ID: "a",
    AWS_SECRET_ACCESS_KEY: "b",
    AWS_REGION: "us-east-1",
  });
}

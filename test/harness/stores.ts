/**
 * Real object stores for tests: versitygw (S3), fake-gcs-server, Azurite, a directory; each in a directory of its own,
 * behind a proxy that can break connections. `node scripts/servers.mjs` installs the servers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openStores } from "../../src/object-store/backends/stores.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { eventually } from "./eventually.ts";
import { FaultyProxy, freePort } from "./faulty-proxy.ts";
import { root } from "./server.ts";

const SERVERS = join(root, ".servers");
const binary = (name: string) => join(SERVERS, "bin", name);
const AZURITE = join(SERVERS, "node_modules", "azurite", "dist", "src", "blob", "main.js");
const AZURITE_KEY =
  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

export const isS3Installed = existsSync(binary("versitygw"));
export const isGcsInstalled = existsSync(binary("fake-gcs-server"));
export const isAzureInstalled = existsSync(AZURITE);

export interface TestStore {
  /** `s3://bucket`, without a slash at the end. */
  base: string;
  scheme: "s3" | "gs" | "az" | "file";
  /** The environment variables with which a server reaches it through the proxy. */
  env: Record<string, string>;
  roots: string[];
  /** Undefined for a directory. */
  proxy: FaultyProxy | undefined;
  put(key: string, content: string | Buffer): Promise<void>;
  kill(): void;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** All of them. */
export const STORES = [
  { name: "a directory", start: startDirectory, isInstalled: true },
  { name: "S3 (versitygw)", start: startS3, isInstalled: isS3Installed },
  { name: "Google Cloud Storage (fake-gcs-server)", start: startGcs, isInstalled: isGcsInstalled },
  { name: "Azure Blob Storage (Azurite)", start: startAzure, isInstalled: isAzureInstalled },
];

/** Opens the store like the controller. The SDKs read the environment of this process. */
export function openTestStore(store: TestStore): ObjectStore {
  Object.assign(process.env, store.env);
  return openStores({
    roots: store.roots.map((path) => ({ path, isReadOnly: false })),
    dataDir: "/nowhere",
    outputsDirectory: "/nowhere/outputs",
    temporaryDirectory: tmpdir(),
    env: process.env,
  });
}

function newDirectory(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "quern-store-")));
}

/** A process that listens, and can be killed and started again with the same data. */
class ServerProcess {
  private readonly start: () => ChildProcess;
  private readonly isReady: () => Promise<boolean>;
  private child: ChildProcess | undefined;

  constructor(start: () => ChildProcess, isReady: () => Promise<boolean>) {
    this.start = start;
    this.isReady = isReady;
  }

  async run(): Promise<void> {
    this.child = this.start();
    await eventually("the store answers", () => this.isReady().catch(() => false), 30_000);
  }

  kill(): void {
    this.child?.kill("SIGKILL");
  }
}

const answers = (url: string) => async () => (await fetch(url)).status > 0;

export async function startDirectory(): Promise<TestStore> {
  const directory = newDirectory();
  return {
    base: `file://${directory}/bucket`,
    scheme: "file",
    env: {},
    roots: [directory],
    proxy: undefined,
    put: async (key, content) => {
      mkdirSync(dirname(join(directory, "bucket", key)), { recursive: true });
      writeFileSync(join(directory, "bucket", key), content);
    },
    kill: () => {},
    restart: async () => {},
    stop: async () => rmSync(directory, { recursive: true, force: true }),
  };
}

export interface TestS3 extends TestStore {
  /** The directory with the bucket's objects as files. */
  directory: string;
  /** Makes the bucket public for listing and reading. */
  makePublic(): Promise<void>;
  /** The keys of multipart uploads that were neither completed nor aborted. */
  unfinished(): Promise<string[]>;
}

/** `address`: of this machine, at which others reach it too, without the proxy. */
export async function startS3(address?: string): Promise<TestS3> {
  const directory = newDirectory();
  mkdirSync(join(directory, "bucket"));
  const port = await freePort();
  const args = [
    "--access",
    "quern-test",
    "--secret",
    "quern-secret",
    "--port",
    `${address === undefined ? "127.0.0.1" : "0.0.0.0"}:${port}`,
    "--quiet",
  ];
  const server = new ServerProcess(
    () => spawn(binary("versitygw"), [...args, "posix", directory], { stdio: "ignore" }),
    answers(`http://127.0.0.1:${port}`),
  );
  await server.run();
  const proxy = await FaultyProxy.open(port);
  const env = {
    AWS_ENDPOINT_URL_S3: address === undefined ? proxy.url : `http://${address}:${port}`,
    AWS_ACCESS_KEY_ID: "quern-test",
    AWS_SECRET_ACCESS_KEY: "quern-secret",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const { ListMultipartUploadsCommand, S3Client, PutBucketPolicyCommand, PutObjectCommand } = await import(
    "@aws-sdk/client-s3"
  );
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: "quern-test", secretAccessKey: "quern-secret" },
  });
  return {
    base: "s3://bucket",
    scheme: "s3",
    env,
    roots: [],
    proxy,
    directory: join(directory, "bucket"),
    makePublic: async () => {
      const allow = (action: string, resource: string) => ({
        Effect: "Allow",
        Principal: "*",
        Action: action,
        Resource: `arn:aws:s3:::${resource}`,
      });
      const Statement = [allow("s3:ListBucket", "bucket"), allow("s3:GetObject", "bucket/*")];
      const Policy = JSON.stringify({ Version: "2012-10-17", Statement });
      await client.send(new PutBucketPolicyCommand({ Bucket: "bucket", Policy }));
    },
    unfinished: async () => {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: "bucket" }));
      return Uploads.map(({ Key }) => Key!);
    },
    put: async (key, content) => {
      await client.send(new PutObjectCommand({ Bucket: "bucket", Key: key, Body: content }));
    },
    kill: () => server.kill(),
    restart: () => server.run(),
    stop: async () => {
      server.kill();
      await proxy.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export async function startGcs(): Promise<TestStore> {
  const port = await freePort();
  const proxy = await FaultyProxy.open(port);
  const args = ["-scheme", "http", "-host", "127.0.0.1", "-port", String(port), "-backend", "memory"];
  const server = new ServerProcess(
    () =>
      spawn(binary("fake-gcs-server"), [...args, "-public-host", proxy.url.slice(7)], { stdio: "ignore" }),
    answers(`http://127.0.0.1:${port}/storage/v1/b`),
  );
  await server.run();
  const post = async (path: string, body: string | Buffer) => {
    const answer = await fetch(proxy.url + path, { method: "POST", body: new Uint8Array(Buffer.from(body)) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  };
  await post("/storage/v1/b?project=quern", JSON.stringify({ name: "bucket" }));
  return {
    base: "gs://bucket",
    scheme: "gs",
    env: { STORAGE_EMULATOR_HOST: proxy.url },
    roots: [],
    proxy,
    put: (key, content) =>
      post(`/upload/storage/v1/b/bucket/o?uploadType=media&name=${encodeURIComponent(key)}`, content),
    kill: () => server.kill(),
    restart: () => server.run(),
    stop: async () => {
      server.kill();
      await proxy.close();
    },
  };
}

export async function startAzure(): Promise<TestStore> {
  const directory = newDirectory();
  const port = await freePort();
  const proxy = await FaultyProxy.open(port);
  const args = ["--blobHost", "127.0.0.1", "--blobPort", String(port), "--location", directory, "--silent"];
  const server = new ServerProcess(
    () => spawn(process.execPath, [AZURITE, ...args, "--skipApiVersionCheck"], { stdio: "ignore" }),
    answers(`http://127.0.0.1:${port}`),
  );
  await server.run();
  const connection = (url: string) =>
    `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${AZURITE_KEY};BlobEndpoint=${url}/devstoreaccount1;`;
  const { BlobServiceClient } = await import("@azure/storage-blob");
  const container = BlobServiceClient.fromConnectionString(
    connection(`http://127.0.0.1:${port}`),
  ).getContainerClient("bucket");
  await container.create();
  return {
    base: "az://bucket",
    scheme: "az",
    env: { AZURE_STORAGE_CONNECTION_STRING: connection(proxy.url) },
    roots: [],
    proxy,
    put: async (key, content) => {
      await container.getBlockBlobClient(key).upload(content, Buffer.byteLength(content));
    },
    kill: () => server.kill(),
    restart: () => server.run(),
    stop: async () => {
      server.kill();
      await proxy.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Opens the S3 client with the usual credentials: environment, profile, instance role. Without any, it is anonymous.
 * The SDK itself reads `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` and profiles.
 */
import type { S3Client } from "@aws-sdk/client-s3";
import { STORE_ERROR_BYTES_MAX, STORE_SILENCE_MS } from "../../contracts/limits/stores.ts";
import { s3Sdk } from "../aws-sdk.ts";
import { hideCredentials, SILENT } from "./aws-errors.ts";
import { boundAnswers } from "./bound-answers.ts";

export interface S3Options {
  /** The address of a store other than Amazon's, if the environment configures one. */
  endpoint: string | undefined;
}

export interface S3Access {
  client: S3Client;
  /** The identity of the requests, for messages. */
  identity: string;
  isAnonymous: boolean;
}

/** Amazon redirects from here to the right region; other stores ignore it. */
const REGION_DEFAULT = "us-east-1";
/** Few: jobs wait for a store themselves (patient-store.ts). */
const TRIES = 2;
const CONNECT_MS = 5_000;
/** Commands whose responses may be large: the SDK does not read them. */
const READ_HERE: ReadonlySet<string> = new Set(["GetObjectCommand", "ListObjectsV2Command"]);

export async function openS3({ endpoint }: S3Options): Promise<S3Access> {
  const { S3Client } = await s3Sdk();
  const chain = new S3Client({ logger: SILENT });
  const found = await chain.config.credentials().then(
    ({ accessKeyId }) => ({ isAnonymous: false, identity: `the access key …${accessKeyId.slice(-4)}` }),
    (error: Error) => ({ isAnonymous: true, identity: `no credentials (${error.message})` }),
  );
  const client = new S3Client({
    region: () => chain.config.region().catch(() => REGION_DEFAULT),
    credentials: chain.config.credentials,
    logger: SILENT,
    followRegionRedirects: true,
    // Buckets as host names need DNS entries, which a self-hosted store rarely has.
    forcePathStyle: endpoint !== undefined && !/\.amazonaws\.com(\.cn)?(:|\/|$)/.test(endpoint),
    maxAttempts: TRIES,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: STORE_SILENCE_MS,
      throwOnRequestTimeout: true,
    },
    // A store that does not know the header would let each piece wait for a response to it.
    expectContinueHeader: false,
    // Ranges have no checksum, and stores other than Amazon's do not know the newer ones.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    ...(found.isAnonymous ? UNSIGNED : {}),
  });
  boundAnswers(client, (status, command) =>
    status < 300 && READ_HERE.has(command) ? undefined : STORE_ERROR_BYTES_MAX,
  );
  hideCredentials(client);
  return { client, ...found };
}

const UNSIGNED = {
  signer: { sign: async <T>(request: T) => request },
  credentials: { accessKeyId: "", secretAccessKey: "" },
};

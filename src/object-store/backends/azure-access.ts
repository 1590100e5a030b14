/** Opens Azure Blob Storage through its own client, an optional peer dependency, and says what its errors mean. */
import type { DefaultAzureCredential } from "@azure/identity";
import type { BlobServiceClient, RestError, StorageSharedKeyCredential } from "@azure/storage-blob";
import { ServiceError } from "../../contracts/errors.ts";
import { ObjectMissing } from "../object-store.ts";
import { storeError } from "../store-errors.ts";
import { AzureClient } from "./azure-client.ts";

/** Few: jobs wait for a store themselves (patient-store.ts). */
const RETRIES = { maxTries: 2, retryDelayInMs: 200 };

export interface AzureOptions {
  /** AZURE_STORAGE_CONNECTION_STRING, _ACCOUNT, _KEY and _SAS_TOKEN, as Azure's own tools read them. */
  connectionString: string | undefined;
  account: string | undefined;
  key: string | undefined;
  sasToken: string | undefined;
}

type Credential = StorageSharedKeyCredential | DefaultAzureCredential | undefined;

export interface AzureAccess {
  service: BlobServiceClient;
  client: AzureClient;
  identity: string;
}

const CURES = {
  read: "give the server credentials that may list and read it (AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, or a role)",
  write:
    "give the server credentials that may write it (AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, or the role Storage Blob Data Contributor)",
};

/**
 * Opens Azure with a connection string, an account's key or signature, or Azure's usual chain. Without any of them,
 * access is anonymous.
 */
export async function openAzure(options: AzureOptions): Promise<AzureAccess> {
  const { connectionString, account, key, sasToken } = options;
  const blobs = await import("@azure/storage-blob").catch(needsClient("@azure/storage-blob"));
  const client = new AzureClient(blobs.RestError);
  const pipeline = { retryOptions: RETRIES, httpClient: client };
  if (connectionString !== undefined) {
    const service = blobs.BlobServiceClient.fromConnectionString(connectionString, pipeline);
    return { service, client, identity: "AZURE_STORAGE_CONNECTION_STRING" };
  }
  if (account === undefined)
    throw new ServiceError(
      "store_forbidden",
      "az:// needs the storage account: set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT for the server",
    );
  const url = `https://${account}.blob.core.windows.net`;
  const open = (address: string, credential: Credential, identity: string) => ({
    service: new blobs.BlobServiceClient(address, credential, pipeline),
    client,
    identity,
  });
  if (key !== undefined)
    return open(url, new blobs.StorageSharedKeyCredential(account, key), "AZURE_STORAGE_KEY");
  if (sasToken !== undefined)
    return open(`${url}?${sasToken.replace(/^\?/, "")}`, undefined, "AZURE_STORAGE_SAS_TOKEN");
  const identity = await import("@azure/identity").catch(needsClient("@azure/identity"));
  const credential = new identity.DefaultAzureCredential();
  const problem = await credential.getToken("https://storage.azure.com/.default").then(
    () => undefined,
    (error: Error) => error.message.split("\n")[0],
  );
  return problem === undefined
    ? open(url, credential, "Azure's default credential")
    : open(url, undefined, `no credentials (${problem})`);
}

function needsClient(name: string): (error: Error) => never {
  return (error) => {
    const message = `az:// needs Azure's client, installed next to the server: npm install @azure/storage-blob @azure/identity (${name} is missing)`;
    throw new ServiceError("not_supported_yet", message, { cause: error });
  };
}

export function toStoreError(
  error: RestError,
  path: string,
  identity: string,
  access: "read" | "write",
): Error {
  if (error.code === "ContainerNotFound")
    return new ServiceError(
      "bucket_not_found",
      `there is no container for ${path}: check its name and AZURE_STORAGE_ACCOUNT`,
      { cause: error },
    );
  if (error.statusCode === 404) return new ObjectMissing(path, error);
  return storeError(error, { path, access, status: error.statusCode, identity, cure: CURES[access] });
}

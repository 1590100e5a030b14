/**
 * The authority of an installation's workers, in a Secret of the namespace: who issues their certificates, and from what
 * their tokens follow. It is made once. A worker's certificate is renewed in time, and its pods read it again.
 */
import { createHmac, createPrivateKey, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import { wallMs } from "../../base/clock.ts";
import { CannotStart } from "../../contracts/cannot-start.ts";
import type { ApiClient } from "../api-client.ts";
import { ApiError } from "../api-error.ts";
import { type Certified, isDue, issueCertificate, makeAuthority } from "../certificates/certificate.ts";
import { MANAGED, objectName, workerHost } from "../objects/names.ts";
import type { WorkerSecret } from "../objects/worker-pods.ts";
import { type KubernetesObject, pathOf } from "../resources.ts";

/** The name of the Secret. */
export const AUTHORITY = "quern-authority";
const SEED_BYTES = 32;
/** Reading a certificate takes a third of a millisecond, and there may be thousands. */
const CHECKED_AGAIN_MS = 60 * 60_000;

interface Secret extends KubernetesObject {
  data?: Readonly<Record<string, string>>;
}

interface Opened {
  authority: Certified & { privateKey: KeyObject };
  seed: Buffer;
}

export interface AuthorityOptions {
  client: ApiClient;
  namespace: string;
  /** Of the database. Another one's workers are not ours. */
  instanceId: string;
}

export class WorkerAuthority {
  private readonly options: AuthorityOptions;
  private readonly issued = new Map<string, Certified & { checkedMs: number }>();
  private opened: Opened | undefined;
  private onOpen = () => {};
  /** Resolves once it is known. */
  readonly isOpen = new Promise<void>((resolve) => {
    this.onOpen = resolve;
  });

  constructor(options: AuthorityOptions) {
    this.options = options;
  }

  /** Reads it, or makes it. Throws if the cluster does not answer, or if another installation has the namespace. */
  async open(): Promise<void> {
    const { client, namespace } = this.options;
    const path = pathOf("Secret", namespace, AUTHORITY);
    const found = (await read(client, path)) ?? (await this.make());
    const { instance = "", "ca.crt": cert, "ca.key": key, seed } = texts(found);
    if (instance !== this.options.instanceId)
      throw new CannotStart(
        "option_unusable",
        `namespace ${namespace} belongs to the Quern server of another database (instance ${instance}): use a namespace for each server; if that server is gone for good, run \`kubectl -n ${namespace} delete secret ${AUTHORITY}\`, and its APIs' objects are removed`,
      );
    if (cert === undefined || key === undefined || seed === undefined)
      throw new CannotStart(
        "option_unusable",
        `Secret ${AUTHORITY} lacks ca.crt, ca.key or seed: delete it, and it is made again`,
      );
    this.opened = {
      authority: { cert, key, privateKey: createPrivateKey(key) },
      seed: Buffer.from(seed, "hex"),
    };
    this.onOpen();
  }

  get ca(): string {
    return this.known.authority.cert;
  }

  /** What opens the workers of an API, and what these show to get their project. */
  tokenOf(api: string): string {
    return createHmac("sha256", this.known.seed).update(`token of ${api}`).digest("base64url");
  }

  /** Whether `given` is the token of one of these APIs. */
  isTokenOf(apis: readonly string[], given: string): boolean {
    const hash = (text: string) => createHmac("sha256", this.known.seed).update(text).digest();
    return apis.some((api) => timingSafeEqual(hash(given), hash(this.tokenOf(api))));
  }

  /** The certificate in the cluster stays until it is due. */
  async secretOf(api: string, now: Date): Promise<WorkerSecret> {
    const { client, namespace } = this.options;
    const names: [string] = [workerHost(api, namespace)];
    const known = this.issued.get(api);
    let { cert = "", key = "" } = known ?? {};
    if (known === undefined) {
      const found = texts(await read(client, pathOf("Secret", namespace, objectName(api))));
      [cert = "", key = ""] = [found["tls.crt"], found["tls.key"]];
    }
    const isFresh = known !== undefined && now.getTime() - known.checkedMs < CHECKED_AGAIN_MS;
    if (!isFresh && isDue(cert, names, this.ca, now))
      ({ cert, key } = issueCertificate(this.known.authority, names, now));
    this.issued.set(api, { cert, key, checkedMs: isFresh ? known.checkedMs : now.getTime() });
    return { token: this.tokenOf(api), cert, key, authority: this.ca };
  }

  /** For the pods of a job of this API: its own certificate, which nobody renews. */
  jobSecretOf(api: string, now: Date): WorkerSecret {
    const host = workerHost(api, this.options.namespace);
    const { cert, key } = issueCertificate(this.known.authority, [host], now);
    return { token: this.tokenOf(api), cert, key, authority: this.ca };
  }

  /** The API is gone. */
  forget(api: string): void {
    this.issued.delete(api);
  }

  /** For the server that gives projects to pods. */
  serverCertificate(host: string, now: Date): Certified {
    return issueCertificate(this.known.authority, [host], now);
  }

  private get known(): Opened {
    if (this.opened === undefined) throw new Error("the authority of the workers is not known yet");
    return this.opened;
  }

  /** If another controller was faster, its authority counts. */
  private async make(): Promise<Secret> {
    const { client, namespace, instanceId } = this.options;
    const { cert, key } = makeAuthority(`Quern workers of ${namespace}`, new Date(wallMs()));
    const stringData = {
      instance: instanceId,
      "ca.crt": cert,
      "ca.key": key,
      seed: randomBytes(SEED_BYTES).toString("hex"),
    };
    const metadata = { name: AUTHORITY, namespace, labels: MANAGED };
    const secret = { apiVersion: "v1", kind: "Secret", type: "Opaque", metadata, stringData };
    try {
      return await client.create<Secret>(pathOf("Secret", namespace), secret);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      return client.get<Secret>(pathOf("Secret", namespace, AUTHORITY));
    }
  }
}

async function read(client: ApiClient, path: string): Promise<Secret | undefined> {
  try {
    return await client.get<Secret>(path);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function texts(secret: Secret | undefined): Record<string, string | undefined> {
  const entries = Object.entries(secret?.data ?? {});
  return Object.fromEntries(entries.map(([name, data]) => [name, Buffer.from(data, "base64").toString()]));
}

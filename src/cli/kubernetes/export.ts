/** `quern export kubernetes`: prints YAML for `kubectl apply -f -`. */
import { stringify } from "yaml";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { manifest } from "./manifest.ts";
import type { PodChoice } from "./server-pod.ts";

export interface KubernetesOptions {
  namespace: string;
  image: string;
  storage: string;
  cpus: string;
  memory: string;
  replicas?: string;
  databaseSecret?: string;
  state?: string;
  stateSecret?: string;
  engine?: string;
  workerImage?: string;
}

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Names of Secrets are DNS subdomains. */
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const REPLICAS_MAX = 9;
const STATE = /^(s3|gs|az):\/\/[^\s]+$/;
const QUANTITY = /^([1-9]\d{0,8})(Mi|Gi|Ti)$/;
const MEBIBYTES: Readonly<Record<string, number>> = { Mi: 1, Gi: 1024, Ti: 1024 * 1024 };

export async function exportKubernetes({ out }: CliContext, options: KubernetesOptions): Promise<number> {
  const objects = manifest(podChoice(options));
  await out(objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join("---\n"));
  return EXIT.success;
}

/** Throws a CliError that says which option is wrong, and what it may be. */
export function podChoice(options: KubernetesOptions): PodChoice {
  const { namespace, image, storage, databaseSecret, state, stateSecret } = options;
  if (!LABEL.test(namespace)) throw wrong("--namespace", namespace, "lower-case letters, digits and -");
  if (!/^[^\s]+$/.test(image)) throw wrong("--image", image, "a name such as registry.example/quern:1");
  mebibytes("--storage", storage);
  const { engine = "local", workerImage } = options;
  if (engine !== "local" && engine !== "kubernetes") throw wrong("--engine", engine, "local or kubernetes");
  if (engine === "kubernetes" && databaseSecret === undefined)
    throw new CliError("--engine kubernetes needs --database-secret: SQLite stays on one volume", EXIT.usage);
  if (databaseSecret !== undefined && !SUBDOMAIN.test(databaseSecret))
    throw wrong("--database-secret", databaseSecret, "the name of a Secret");
  checkState(options);
  const cpus = Number(options.cpus);
  if (!(cpus >= 0.1 && cpus <= 1024)) throw wrong("--cpus", options.cpus, "a number from 0.1 to 1024");
  return {
    namespace,
    image,
    storage,
    cpus,
    memoryMi: mebibytes("--memory", options.memory),
    databaseSecret,
    state,
    stateSecret,
    replicas: replicasOf(options),
    workerImage: engine === "kubernetes" ? workerImage : undefined,
  };
}

function checkState({ state, stateSecret, databaseSecret }: KubernetesOptions): void {
  if (state !== undefined && !STATE.test(state))
    throw wrong("--state", state, "a prefix of an object store such as s3://my-bucket/quern");
  if (state !== undefined && databaseSecret === undefined)
    throw new CliError(
      "--state needs --database-secret: SQLite keeps its database on one volume; name a Secret with the URL of a PostgreSQL database",
      EXIT.usage,
    );
  if (stateSecret === undefined) return;
  if (!SUBDOMAIN.test(stateSecret)) throw wrong("--state-secret", stateSecret, "the name of a Secret");
  if (state === undefined) throw new CliError("--state-secret needs --state", EXIT.usage);
}

/** More than one server needs what all of them can reach. */
function replicasOf({ replicas = "1", state, databaseSecret }: KubernetesOptions): number {
  const count = Number(replicas);
  if (!(Number.isInteger(count) && count >= 1 && count <= REPLICAS_MAX))
    throw wrong("--replicas", replicas, `a number from 1 to ${REPLICAS_MAX}`);
  if (count > 1 && (state === undefined || databaseSecret === undefined))
    throw new CliError(
      `--replicas ${count} needs --database-secret and --state: a standby takes over only what is not on the other server's volume; name a Secret with the URL of a PostgreSQL database, and a prefix such as s3://my-bucket/quern`,
      EXIT.usage,
    );
  return count;
}

function mebibytes(option: string, text: string): number {
  const [, number, unit] = QUANTITY.exec(text) ?? [];
  const factor = MEBIBYTES[unit ?? ""];
  if (factor === undefined) throw wrong(option, text, "a size such as 512Mi or 8Gi");
  return Number(number) * factor;
}

function wrong(option: string, value: string, expected: string): CliError {
  return new CliError(`${option} ${JSON.stringify(value)} is not ${expected}`, EXIT.usage);
}

/**
 * Reads a kubeconfig: the file that tells kubectl where a cluster is. Tokens and client certificates are understood.
 * Programs that fetch credentials (`exec`, `auth-provider`) are not run, and an error says so.
 */
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import { type ClusterAccess, renewedToken } from "./cluster-access.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * `text`: the file's. `file`: its path, from which the paths in it are resolved. `readText` reads one of those. Throws
 * an error that says what is missing and what to do.
 */
export function readKubeconfig(
  text: string,
  file: string,
  readText: (path: string) => string,
): ClusterAccess {
  // A pretty error would show the line, which may have a token.
  const config = asFields(parse(text, { prettyErrors: false }), `${file} is not a kubeconfig`);
  const name = textOf(config["current-context"]);
  if (name === undefined)
    throw new Error(`${file} has no current-context: choose one with \`kubectl config use-context NAME\``);
  const context = entryOf(config, "contexts", name, "context");
  const cluster = entryOf(config, "clusters", textOf(context.cluster) ?? "", "cluster");
  const user = entryOf(config, "users", textOf(context.user) ?? "", "user");
  const server = textOf(cluster.server);
  if (server === undefined || !URL.canParse(server))
    throw new Error(`${file}: the cluster of context ${name} has no address of a server`);
  if (cluster["insecure-skip-tls-verify"] === true)
    throw new Error(
      `${file} says insecure-skip-tls-verify, which would send your token to anybody: give certificate-authority`,
    );
  const pem = (fields: Fields, field: string) =>
    pemOf(fields, field, (path) => readText(resolve(dirname(file), path)));
  return {
    server,
    ca: pem(cluster, "certificate-authority"),
    serverName: textOf(cluster["tls-server-name"]),
    namespace: textOf(context.namespace) ?? "default",
    credentials: credentialsOf(user, file, pem),
  };
}

function credentialsOf(
  user: Fields,
  file: string,
  pem: (fields: Fields, field: string) => string | undefined,
): ClusterAccess["credentials"] {
  const tokenFile = textOf(user.tokenFile);
  if (tokenFile !== undefined) return renewedToken(resolve(dirname(file), tokenFile));
  const token = textOf(user.token);
  const [cert, key] = [pem(user, "client-certificate"), pem(user, "client-key")];
  if (
    token === undefined &&
    cert === undefined &&
    (user.exec ?? user["auth-provider"] ?? user.username) !== undefined
  )
    throw new Error(
      `${file} fetches its credentials with a program or a password, which Quern does not: make a kubeconfig with a token (\`kubectl create token NAME\`)`,
    );
  return async () => ({ token, cert, key });
}

/** Content in the file itself, as base64, or a path. */
function pemOf(fields: Fields, field: string, readText: (path: string) => string): string | undefined {
  const data = textOf(fields[`${field}-data`]);
  if (data !== undefined) return Buffer.from(data, "base64").toString();
  const path = textOf(fields[field]);
  return path === undefined ? undefined : readText(path);
}

/** The value `field` of the entry with this name in a list of the kubeconfig. */
function entryOf(config: Fields, list: string, name: string, field: string): Fields {
  const entries = Array.isArray(config[list]) ? (config[list] as unknown[]) : [];
  const entry = entries.find((each) => isFields(each) && each.name === name);
  return asFields(
    isFields(entry) ? entry[field] : undefined,
    `the kubeconfig has no ${field} ${JSON.stringify(name)}`,
  );
}

function asFields(value: unknown, otherwise: string): Fields {
  if (!isFields(value)) throw new Error(`${otherwise}: check it with \`kubectl config view\``);
  return value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * `quern env`: servers by name, in a file of the user, with mode 0600 because it contains keys. `local` always exists:
 * it is the server of the data directory on this machine.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { table } from "./terminal/table.ts";

export const LOCAL = "local";
const LEGAL_NAME = /^[a-z0-9][a-z0-9.-]*$/i;

export interface Environment {
  host: string;
  key?: string;
}

export interface EnvironmentsFile {
  /** The environment for commands without `-e`. */
  current: string;
  environments: Record<string, Environment>;
}

export function readEnvironments(file: string): EnvironmentsFile {
  if (!existsSync(file)) return { current: LOCAL, environments: {} };
  try {
    return JSON.parse(readFileSync(file, "utf8")) as EnvironmentsFile;
  } catch (error) {
    throw new CliError(
      `${file} is not valid JSON (${(error as Error).message}); correct or remove it`,
      EXIT.failed,
    );
  }
}

function writeEnvironments(file: string, content: EnvironmentsFile): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Throws an error that lists the known environments if there is no such one. */
export function findEnvironment(file: string, name: string): Environment {
  const { environments } = readEnvironments(file);
  if (Object.hasOwn(environments, name)) return environments[name]!;
  const names = [LOCAL, ...Object.keys(environments)].join(", ");
  throw new CliError(
    `there is no environment "${name}" (existing: ${names}); \`quern env add ${name} --host URL\` adds it`,
    EXIT.usage,
  );
}

/** `--key -` reads the key from standard input, so that no shell history contains it. */
export function addEnvironment(
  { files, err }: CliContext,
  name: string,
  options: { host: string; key?: string },
): number {
  if (name === LOCAL)
    throw new CliError(`"${LOCAL}" is this machine's server; choose another name`, EXIT.usage);
  if (!LEGAL_NAME.test(name))
    throw new CliError(
      `a name has letters, digits, ".", "-" and begins with a letter or digit (got "${name}")`,
      EXIT.usage,
    );
  if (!/^https?:\/\/[^/]+/.test(options.host))
    throw new CliError(
      `--host must be a URL such as https://quern.example.com (got "${options.host}")`,
      EXIT.usage,
    );
  if (/^https?:\/\/[^/?#]*@/.test(options.host))
    throw new CliError(
      "--host must not have a user or password; give the server's key with --key",
      EXIT.usage,
    );
  const key = options.key === "-" ? readFileSync(0, "utf8").trim() : options.key;
  const content = readEnvironments(files.environments);
  content.environments[name] = { host: options.host, ...(key === undefined || key === "" ? {} : { key }) };
  writeEnvironments(files.environments, content);
  err(`added ${name}; use it with -e ${name}, or always: quern env use ${name}\n`);
  return EXIT.success;
}

export async function listEnvironments({ files, out, output }: CliContext): Promise<number> {
  const { current, environments } = readEnvironments(files.environments);
  const rows = [
    [LOCAL, { host: "(the server of the data directory)" }] as const,
    ...Object.entries(environments),
  ];
  if (output === "json") {
    const views = rows.map(([name, { host }]) => ({ name, host, is_current: name === current }));
    await out(`${JSON.stringify(views, null, 2)}\n`);
    return EXIT.success;
  }
  const cells = rows.map(([name, { host, key }]: readonly [string, Environment]) => [
    name === current ? `${name} *` : name,
    host,
    key === undefined ? "" : "yes",
  ]);
  await out(`${table(["env", "host", "key"], cells)}\n`);
  return EXIT.success;
}

export function useEnvironment({ files, err }: CliContext, name: string): number {
  if (name !== LOCAL) findEnvironment(files.environments, name);
  writeEnvironments(files.environments, { ...readEnvironments(files.environments), current: name });
  err(`commands now go to ${name}\n`);
  return EXIT.success;
}

export function removeEnvironment({ files, err }: CliContext, name: string): number {
  findEnvironment(files.environments, name);
  const content = readEnvironments(files.environments);
  delete content.environments[name];
  writeEnvironments(files.environments, {
    ...content,
    current: content.current === name ? LOCAL : content.current,
  });
  err(`removed ${name}\n`);
  return EXIT.success;
}

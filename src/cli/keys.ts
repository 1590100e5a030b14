/** The commands `quern keys create|list|rotate|revoke`. */
import type * as z from "zod";
import { wallMs } from "../base/clock.ts";
import {
  ADMIN_KEY_ID,
  askedKey,
  type CreatedKey,
  KEY_SCOPES,
  type KeyScope,
  type KeyView,
  type NewKey,
  newKeySchema,
  rateText,
} from "../contracts/keys.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { age, dateTime, since, table } from "./terminal/table.ts";

const MINUTE_MS = 60_000;
const KEY_COLUMNS = ["key", "name*", "scope", "api", "rate*", "expires*", "last used", "age"];

/** Creates a key and prints it alone. A key is shown only this once. With `--data-dir`, no server needs to run. */
export async function createKey(
  context: CliContext,
  options: {
    scope: string;
    api?: string;
    name?: string;
    dataDir?: string;
    ifNone?: boolean;
    rate?: string;
    expiresIn?: string;
  },
): Promise<number> {
  const { scope, dataDir, ifNone = false, expiresIn: expires_in, ...rest } = options;
  if (!KEY_SCOPES.includes(scope as KeyScope))
    throw new CliError(`--scope must be one of ${KEY_SCOPES.join(", ")} (got "${scope}")`, EXIT.usage);
  if (ifNone && dataDir === undefined) throw new CliError("--if-none needs --data-dir", EXIT.usage);
  if (ifNone && (await context.hasAnyKey(dataDir!))) {
    context.err("there is a key already\n");
    return EXIT.success;
  }
  const asked = { scope, expires_in, ...rest };
  return show(
    context,
    dataDir === undefined
      ? await createThere(context, asked)
      : await context.createKeyOffline(dataDir, checked(asked)),
  );
}

/** The same checks as those of a server. */
function checked(asked: Record<string, unknown>): NewKey {
  const { data, error } = newKeySchema.safeParse(asked);
  if (error === undefined) return askedKey(data);
  const [{ path, message }] = error.issues as [z.core.$ZodIssue];
  throw new CliError(`--${path.join(".").replace("_", "-")} ${message}`, EXIT.usage);
}

/** Creates a key with the same permission. The former key expires after the grace period. */
export async function rotateKey(
  context: CliContext,
  id: string,
  { grace, expiresIn: expires_in }: { grace?: string; expiresIn?: string },
): Promise<number> {
  const body = Buffer.from(JSON.stringify({ grace, expires_in }));
  const path = `/-/keys/${encodeURIComponent(id)}/rotate`;
  return show(context, (await context.client.json<CreatedKey>(path, { method: "POST", body })).value);
}

async function show(context: CliContext, created: CreatedKey): Promise<number> {
  if (context.output === "json") await context.out(`${JSON.stringify(created)}\n`);
  else {
    context.err(
      created.id === ADMIN_KEY_ID
        ? "the new admin token; it is also in admin-token in the server's data directory\n"
        : `key ${created.id}; it is shown only once, so store it safely\n`,
    );
    await context.out(`${created.key}\n`);
  }
  return EXIT.success;
}

async function createThere({ client }: CliContext, asked: Record<string, unknown>): Promise<CreatedKey> {
  try {
    const body = Buffer.from(JSON.stringify(asked));
    return (await client.json<CreatedKey>("/-/keys", { method: "POST", body })).value;
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.unreachable) throw error;
    throw new CliError(`${error.message}; create a key without a server: --data-dir DIR`, EXIT.unreachable);
  }
}

export async function listKeys({ client, output, out }: CliContext): Promise<number> {
  const { value, text } = await client.json<{ keys: KeyView[] }>("/-/keys");
  if (output === "json") await out(`${text}\n`);
  else if (value.keys.length === 0) await out("no keys: anyone who reaches this server can use its APIs\n");
  else {
    const rows = value.keys.map((key) => [
      key.id,
      key.name ?? "",
      key.scope,
      key.api ?? "all",
      key.rate === null ? "" : rateText(key.rate),
      key.expires_time === null ? "" : dateTime(key.expires_time),
      key.last_used_time === null ? "never" : lastUse(wallMs() - Date.parse(key.last_used_time)),
      since(key.created_time),
    ]);
    await out(`${table(KEY_COLUMNS, rows)}\n`);
  }
  return EXIT.success;
}

/** The time is that of a whole minute, so seconds would mean nothing. */
function lastUse(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / MINUTE_MS);
  if (minutes < 1) return "< 1m";
  return minutes < 60 ? `${minutes}m` : age(milliseconds);
}

export async function revokeKey({ client, output, out }: CliContext, id: string): Promise<number> {
  const { value } = await client.json<{ message: string }>(`/-/keys/${encodeURIComponent(id)}`, {
    method: "DELETE",
  });
  await out(output === "json" ? `${JSON.stringify(value)}\n` : `${value.message}\n`);
  return EXIT.success;
}

/** The commands `quern keys create|list|rotate|revoke`. */
import { type CreatedKey, KEY_SCOPES, type KeyScope, type KeyView, rateText } from "../contracts/keys.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { dateTime, since, table } from "./terminal/table.ts";

/** Creates a key and prints it alone. A key is shown only this once. With `--data-dir`, no server needs to run. */
export async function createKey(
  context: CliContext,
  options: { scope: string; api?: string; dataDir?: string; rate?: string; expiresIn?: string },
): Promise<number> {
  const scope = options.scope as KeyScope;
  if (!KEY_SCOPES.includes(scope))
    throw new CliError(`--scope must be one of ${KEY_SCOPES.join(", ")} (got "${scope}")`, EXIT.usage);
  const api = options.api ?? null;
  const created =
    options.dataDir === undefined
      ? await createThere(context, { scope, api, rate: options.rate, expires_in: options.expiresIn })
      : await context.createKeyOffline(options.dataDir, scope, api);
  return show(context, created);
}

/** Creates a key with the same permission. The former key expires after the grace period. */
export async function rotateKey(
  context: CliContext,
  id: string,
  options: { grace?: string },
): Promise<number> {
  const body = Buffer.from(JSON.stringify(options.grace === undefined ? {} : { grace: options.grace }));
  const path = `/-/keys/${encodeURIComponent(id)}/rotate`;
  return show(context, (await context.client.json<CreatedKey>(path, { method: "POST", body })).value);
}

async function show(context: CliContext, created: CreatedKey): Promise<number> {
  if (context.output === "json") await context.out(`${JSON.stringify(created)}\n`);
  else {
    context.err(`key ${created.id}; it is shown only once, so store it safely\n`);
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
      key.scope,
      key.api ?? "all",
      key.rate === null ? "" : rateText(key.rate),
      key.expires_time === null ? "" : dateTime(key.expires_time),
      since(key.created_time),
    ]);
    await out(`${table(["key", "scope", "api", "rate*", "expires*", "age"], rows)}\n`);
  }
  return EXIT.success;
}

export async function revokeKey({ client, output, out }: CliContext, id: string): Promise<number> {
  const { value } = await client.json<{ message: string }>(`/-/keys/${encodeURIComponent(id)}`, {
    method: "DELETE",
  });
  await out(output === "json" ? `${JSON.stringify(value)}\n` : `${value.message}\n`);
  return EXIT.success;
}

/** Requests a change from the server, and prints its message. */
import type { RequestOptions } from "./client.ts";
import { type CliContext, EXIT } from "./context.ts";

export async function change(
  { client, output, out }: CliContext,
  path: string,
  options: Pick<RequestOptions, "method" | "query"> = {},
): Promise<number> {
  const { value } = await client.json<{ message: string }>(path, { method: "POST", ...options });
  await out(output === "json" ? `${JSON.stringify(value)}\n` : `${value.message}\n`);
  return EXIT.success;
}

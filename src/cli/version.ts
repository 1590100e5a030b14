/** `quern version`: prints the versions of the command line and the server. */
import { type CliContext, CliError, EXIT } from "./server/context.ts";

export async function showVersion(context: CliContext, own: string): Promise<number> {
  const server = await versionOfServer(context);
  if (context.output === "json")
    await context.out(`${JSON.stringify({ cli: own, server: server ?? null })}\n`);
  else await context.out(`cli version: ${own}\nserver version: ${server ?? "(no server responds)"}\n`);
  return EXIT.success;
}

/** Undefined if no server responds. */
function versionOfServer({ client }: CliContext): Promise<string | undefined> {
  return client.json<{ version: string }>("/-/version").then(
    ({ value }) => value.version,
    (error: unknown) => {
      if (error instanceof CliError) return undefined;
      throw error;
    },
  );
}

/** The address of a server, from a variable, an environment or a file of the data directory. */
import { CliError, EXIT } from "./context.ts";

/** Throws if it is none: without a scheme, its host is taken for one. */
export function assertAddress(baseUrl: string): void {
  if (/^https?:\/\/[^/]/.test(baseUrl) && URL.canParse(baseUrl)) return;
  throw new CliError(
    `the server's address must be a URL such as https://quern.example.com, and is "${baseUrl}": see \`quern env list\`, -e, QUERN_HOST`,
    EXIT.usage,
  );
}

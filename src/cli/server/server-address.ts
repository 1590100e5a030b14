/** The address of a server, from a variable, an environment or a file of the data directory. */
import { CliError, EXIT } from "./context.ts";

/** The address of a path there. Throws if the server's is none: without a scheme, its host would be taken for one. */
export function addressOf(baseUrl: string, path: string): URL {
  if (/^https?:\/\/[^/]/.test(baseUrl) && URL.canParse(baseUrl)) return new URL(baseUrl + path);
  throw new CliError(
    `the server's address must be a URL such as https://quern.example.com, and is "${baseUrl}": see \`quern env list\`, -e, QUERN_HOST`,
    EXIT.usage,
  );
}

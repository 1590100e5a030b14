/** `quern ui`: prints the address of the dashboard with a one-time code, and opens it in a browser if there is one. */
import { spawn } from "node:child_process";
import { type CliContext, EXIT } from "./context.ts";

interface SignInCode {
  code: string;
  expires_time: string;
  url: string;
}

export async function openDashboard(
  { client, output, out, err, browserOpener }: CliContext,
  { print }: { print?: boolean },
): Promise<number> {
  const { value, text } = await client.json<SignInCode>("/-/session/codes", { method: "POST" });
  await out(output === "json" ? `${text}\n` : `${value.url}\n`);
  if (print === true || browserOpener === undefined || !isWebAddress(value.url)) return EXIT.success;
  err("opening it in the browser; the address signs in once, within a minute\n");
  await open(browserOpener, value.url);
  return EXIT.success;
}

/** The server chose the text, and the opener would also start programs. */
function isWebAddress(url: string): boolean {
  return URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol);
}

/** The address is printed already, so that an opener that is missing or fails is no failure. */
function open(opener: string, url: string): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn(opener, [url], { detached: true, stdio: "ignore" });
    child.once("error", () => resolve());
    child.once("spawn", () => {
      child.unref();
      resolve();
    });
  });
}

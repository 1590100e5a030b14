/** The start of the pages: signs in with the code of `quern ui` if the address has one, then draws. */
import { render } from "preact";
import { followLinks } from "./address/address.ts";
import { followLive } from "./live/live.ts";
import { asError } from "./server/problem.ts";
import { readSession, signIn, takeCode } from "./session/session.ts";
import { App } from "./shell/app.tsx";

const page = document.getElementById("page")!;
const draw = (isSigningIn: boolean, failure?: Error) =>
  render(<App isSigningIn={isSigningIn} failure={failure} />, page);

async function begin(code: string | undefined): Promise<void> {
  try {
    // Neither waits for the other, so that the first numbers are there sooner.
    if (code === undefined) followLive();
    await (code === undefined ? readSession() : signIn({ code }));
    draw(false);
  } catch (thrown) {
    await readSession().catch(() => {});
    draw(false, asError(thrown));
  }
}

/** Again for a code that is pasted into the address of this tab: then only what is after `#` changes, and nothing loads. */
function signInWith(code: string | undefined): void {
  draw(code !== undefined);
  begin(code).catch(reportError);
}

followLinks();
addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== undefined) signInWith(code);
});
signInWith(takeCode());

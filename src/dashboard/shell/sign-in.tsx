/** Signing in: with the address that `quern ui` prints, or with a key that is pasted here. */

import { useState } from "preact/hooks";
import { Command } from "../parts/command.tsx";
import { ErrorNote } from "../parts/notes.tsx";
import { onEvent } from "../server/on-event.ts";
import { asError } from "../server/problem.ts";
import { signIn } from "../session/session.ts";

export function SignIn({ failure }: { failure: Error | undefined }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState(failure);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    await signIn({ key: key.trim() }).catch((thrown) => setError(asError(thrown)));
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <h1 tabIndex={-1}>Sign in to Quern</h1>
      <p>On the machine of the server, or wherever its command line works:</p>
      <Command text="quern ui" />
      <p>It opens this page with a code that works once. Elsewhere, paste a key:</p>
      <form onSubmit={onEvent(submit)}>
        <label class="field">
          Key
          <input
            type="password"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
            autocomplete="off"
            required
          />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Signing in…" : "Sign in"}
        </button>
      </form>
      {error && <ErrorNote error={error} />}
      <p class="quiet">
        A key with the scope <code>view</code> sees everything and changes nothing:{" "}
        <code>quern keys create --scope view</code>. A key with the scope <code>admin</code> also acts.
      </p>
    </main>
  );
}

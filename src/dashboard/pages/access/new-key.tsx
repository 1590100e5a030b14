/** Creates a key, and shows it once. */
import { useState } from "preact/hooks";
import { Dialog } from "../../actions/dialog.tsx";
import { Command } from "../../parts/command.tsx";
import { Choice } from "../../parts/filters.tsx";
import { ErrorNote } from "../../parts/notes.tsx";
import { asError } from "../../server/problem.ts";
import { ask } from "../../server/request.ts";

const SCOPES = ["predict", "submit", "view", "admin"] as const;

export function NewKey({ onClose }: { onClose: () => void }) {
  const [scope, setScope] = useState<string>("predict");
  const [name, setName] = useState("");
  const [created, setCreated] = useState<string>();
  const [error, setError] = useState<Error>();
  const create = (event: Event) => {
    event.preventDefault();
    ask<{ key: string }>("/-/keys", {
      method: "POST",
      body: { scope, ...(name === "" ? {} : { name }) },
    }).then(
      ({ key }) => setCreated(key),
      (thrown) => setError(asError(thrown)),
    );
  };
  return (
    <Dialog title={created === undefined ? "New key" : "Copy the key now"} onClose={onClose}>
      {created === undefined ? (
        <form onSubmit={create}>
          <label class="field">
            Name
            <input
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
              placeholder="who uses it"
            />
          </label>
          <Choice label="Scope" value={scope} options={SCOPES.map((one) => [one, one])} onChange={setScope} />
          {error && <ErrorNote error={error} />}
          <div class="buttons">
            <button type="button" onClick={onClose}>
              Cancel
            </button>
            <button type="submit" class="primary">
              Create
            </button>
          </div>
        </form>
      ) : (
        <>
          <p>It is shown only now.</p>
          <Command text={created} />
          <div class="buttons">
            <button type="button" class="primary" onClick={onClose}>
              Done
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}

/** Asks before something is done. The browser's own dialog keeps the focus inside, and Escape closes it. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorNote } from "../parts/notes.tsx";
import { onEvent } from "../server/on-event.ts";
import { asError } from "../server/problem.ts";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  return (
    <dialog ref={box} onClose={onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What it does, in the button: "Stop 12 jobs". */
  action: string;
  isDestructive?: boolean;
  /** It is done. A thrown error is shown, and the dialog stays. */
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
  children?: ComponentChildren;
  /** A text that must be typed first: the name of what will be gone. */
  typed?: string;
}

export function Confirm({ title, action, isDestructive, onConfirm, onClose, children, typed }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const [text, setText] = useState("");
  const confirm = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (thrown) {
      setError(asError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={onEvent(confirm)}>
        {children}
        {typed !== undefined && (
          <label class="field">
            <span>
              Type <code>{typed}</code> to confirm
            </span>
            <input value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" />
          </label>
        )}
        {error && <ErrorNote error={error} />}
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDestructive ? "bad" : "primary"}
            disabled={isBusy || (typed !== undefined && text !== typed)}
          >
            {isBusy ? "Working…" : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The buttons that change something. Those who may only read do not see them; the server refuses them in any case. */
import { useState } from "preact/hooks";
import { mayAct } from "../session/session.ts";
import { Confirm } from "./dialog.tsx";
import { say } from "./toasts.tsx";

export interface Action {
  label: string;
  /** What it is done to, if a page has several buttons of this label. */
  of?: string;
  /** What it does, said before it is done. */
  about: string;
  isDestructive?: boolean;
  /** A text to type first. */
  typed?: string;
  /** Instead of the page's own: what it is about is gone. */
  after?: () => void;
  run: () => Promise<{ message?: string }>;
}

interface ActionsProps {
  actions: readonly (Action | false)[];
  /** Called when one is done. */
  after: () => void;
}

export function Actions({ actions, after }: ActionsProps) {
  const [asked, ask] = useState<Action>();
  if (!mayAct.value) return null;
  const run = async (action: Action) => {
    const { message } = await action.run();
    say(message ?? `${action.label}: done`);
    (action.after ?? after)();
  };
  return (
    <>
      {actions.map(
        (action) =>
          action && (
            <button
              key={action.label}
              type="button"
              class={action.isDestructive ? "bad" : ""}
              aria-label={action.of && named(action)}
              onClick={() => ask(action)}
            >
              {action.label}
            </button>
          ),
      )}
      {asked && (
        <Confirm
          title={`${named(asked)}?`}
          action={asked.label}
          {...(asked.isDestructive ? { isDestructive: true } : {})}
          {...(asked.typed === undefined ? {} : { typed: asked.typed })}
          onConfirm={() => run(asked)}
          onClose={() => ask(undefined)}
        >
          <p>{asked.about}</p>
        </Confirm>
      )}
    </>
  );
}

const named = ({ label, of }: Action) => (of === undefined ? label : `${label}: ${of}`);

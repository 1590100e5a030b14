/** What stands in the place of content: it is loading, there is none, or it could not be read. */
import type { ComponentChildren } from "preact";
import { Problem } from "../server/problem.ts";
import type { Resource } from "../server/use-resource.ts";
import { Command } from "./command.tsx";
import { Words } from "./words.tsx";

/** Nothing is there yet. It says what would make something appear. */
export function Empty({
  title,
  children,
  command,
}: {
  title: string;
  children?: ComponentChildren;
  command?: string;
}) {
  return (
    <div class="empty">
      <p class="lead">{title}</p>
      {children && <p>{children}</p>}
      {command && <Command text={command} />}
    </div>
  );
}

export function ErrorNote({ error, again }: { error: Error; again?: (() => void) | undefined }) {
  const problem = error instanceof Problem ? error : undefined;
  return (
    <div class="note bad" role="alert">
      <p>
        <Words text={error.message} />
      </p>
      {problem !== undefined && problem.details.length > 0 && (
        <ul>
          {problem.details.map((detail) => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      )}
      {problem?.requestId && <p class="quiet small">request {problem.requestId}</p>}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Keeps the height of what is on its way, so that nothing moves when it comes. */
export function Loading({ lines = 3 }: { lines?: number }) {
  return (
    <div class="loading" aria-busy="true">
      <span class="hidden">loading</span>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} class="bar" />
      ))}
    </div>
  );
}

/** Shows a resource once it is there. A failed refresh is said above the last content. */
export function Loaded<T>({
  resource,
  lines,
  children,
}: {
  resource: Resource<T>;
  lines?: number;
  children: (value: T) => ComponentChildren;
}) {
  const { value, error, isLoading, again } = resource;
  return (
    <>
      {error && <ErrorNote error={error} again={again} />}
      {isLoading && <Loading lines={lines ?? 3} />}
      {value !== undefined && children(value)}
    </>
  );
}

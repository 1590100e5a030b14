/** The sections, who is signed in, and whether the page is live. */

import { say } from "../actions/toasts.tsx";
import { live, overview } from "../live/live.ts";
import { Link } from "../parts/link.tsx";
import { Status } from "../parts/status.tsx";
import { onEvent } from "../server/on-event.ts";
import { asError } from "../server/problem.ts";
import { session, signOut } from "../session/session.ts";
import { nextTheme, theme } from "../session/theme.ts";
import { GoTo } from "./go-to.tsx";

const SECTIONS = [
  ["Overview"],
  ["APIs", "apis"],
  ["Jobs", "jobs"],
  ["Queues", "queues"],
  ["Applications", "applications"],
  ["Keys", "keys"],
  ["Audit", "audit"],
] as const;

export function Navigation() {
  return (
    <header class="side">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <p class="brand">
        Quern <span class="quiet small">{overview.value?.server.version}</span>
      </p>
      <nav aria-label="sections">
        {SECTIONS.map(([label, ...to]) => (
          <Link key={label} to={to} isSection>
            {label}
          </Link>
        ))}
      </nav>
      <div class="foot">
        <GoTo />
        <Connection />
        <button type="button" class="plain small" onClick={nextTheme}>
          Theme: {theme.value}
        </button>
        <Who />
      </div>
    </header>
  );
}

function Connection() {
  const { state } = live.value;
  if (state === "live") return <Status of="live" />;
  if (state === "lost") return <Status of="warning">connecting again…</Status>;
  return <Status of="connecting">connecting…</Status>;
}

function Who() {
  const known = session.value;
  if (known === undefined) return null;
  const leave = () => signOut().catch((thrown) => say(asError(thrown).message));
  return (
    <>
      <span class="small quiet">
        {known.name ?? "signed in"} ({known.scope === "admin" ? "may act" : "may look"})
      </span>
      <button type="button" class="plain small" onClick={onEvent(leave)}>
        Sign out
      </button>
    </>
  );
}

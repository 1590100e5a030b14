/** A link to another page of the dashboard, which says if that page is open. */
import type { ComponentChildren } from "preact";
import { address, pageUrl } from "../address/address.ts";

interface LinkProps {
  to: readonly string[];
  query?: Record<string, string | undefined>;
  class?: string;
  /** It is current on the pages below it too. */
  isSection?: boolean;
  title?: string;
  children: ComponentChildren;
}

export function Link({ to, query, isSection = false, children, ...rest }: LinkProps) {
  const { segments } = address.value;
  const isHere = isSection ? segments[0] === to[0] : segments.join("/") === to.join("/");
  return (
    <a href={pageUrl(to, query)} aria-current={isHere ? "page" : undefined} {...rest}>
      {children}
    </a>
  );
}

export function ApiLink({ name }: { name: string }) {
  return <Link to={["apis", name]}>{name}</Link>;
}

/** A job by the end of its id, which differs from its neighbours'. The title has the whole. */
export function JobLink({ api, job, isWhole = false }: { api: string; job: string; isWhole?: boolean }) {
  return (
    <Link to={["jobs", api, job]} class="mono" title={job}>
      {isWhole ? job : `…${job.slice(-8)}`}
    </Link>
  );
}

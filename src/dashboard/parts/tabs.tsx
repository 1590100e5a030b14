/** The parts of a page, as links: the address has the one that is open, so it can be bookmarked. */
import { address, pageUrl } from "../address/address.ts";

export interface Tab {
  id: string;
  label: string;
  count?: number | undefined;
}

/** The open tab: the parameter `tab`, or the first. */
export function openTab(tabs: readonly Tab[]): string {
  const asked = address.value.query.get("tab");
  return tabs.find(({ id }) => id === asked)?.id ?? tabs[0]!.id;
}

export function Tabs({ tabs, label }: { tabs: readonly Tab[]; label: string }) {
  const current = openTab(tabs);
  const { segments } = address.value;
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ id, label: text, count }) => (
        <a
          key={id}
          href={pageUrl(segments, { tab: id === tabs[0]!.id ? undefined : id })}
          aria-current={id === current ? "page" : undefined}
        >
          {text}
          {count !== undefined && <span class="count">{count}</span>}
        </a>
      ))}
    </nav>
  );
}

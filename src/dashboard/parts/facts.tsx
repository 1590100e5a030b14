/** Names with their values, in columns. */
import type { ComponentChildren } from "preact";

export type FactRow = readonly [name: string, value: ComponentChildren];

export function Facts({ rows }: { rows: readonly (FactRow | false | undefined)[] }) {
  return (
    <dl class="facts">
      {rows.map(
        (row) =>
          row && (
            <div key={row[0]}>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A part of a page with a heading. `actions` stand at the end of the heading's line. */
export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section>
      <header class="section-head">
        <h2>{title}</h2>
        {actions && <div class="buttons">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** The head of a page. It takes the focus when the page opens. */
export function PageHead({
  title,
  above,
  actions,
  children,
}: {
  title: ComponentChildren;
  above?: ComponentChildren;
  actions?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <header class="page-head">
      <div>
        {above && <p class="above">{above}</p>}
        <h1 tabIndex={-1}>{title}</h1>
        {children && <div class="under">{children}</div>}
      </div>
      {actions && <div class="buttons">{actions}</div>}
    </header>
  );
}

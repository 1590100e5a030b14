/** What may be larger than its place. It takes the focus, so that a keyboard can scroll it (WCAG 2.2, 2.1.1). */
import type { ComponentChildren } from "preact";

interface ScrollProps {
  /** What is inside, for a screen reader. */
  label: string;
  class?: string;
  children: ComponentChildren;
}

export function Scroll({ label, class: name = "", children }: ScrollProps) {
  return (
    <section class={`scroll ${name}`} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

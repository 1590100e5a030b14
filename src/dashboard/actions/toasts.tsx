/** Short messages about what was done. A screen reader reads them. */
import { signal } from "@preact/signals";

interface Toast {
  id: number;
  text: string;
}

const toasts = signal<Toast[]>([]);
const SHOWN_MS = 6000;
let lastId = 0;

export function say(text: string): void {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((toast) => toast.id !== id);
  }, SHOWN_MS);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

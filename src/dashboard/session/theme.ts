/** Light or dark: as the system says, unless the person has chosen. */
import { signal } from "@preact/signals";
import { applyTheme, chosenTheme, keepTheme, THEMES } from "./chosen-theme.ts";

export const theme = signal(chosenTheme());

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  keepTheme(theme.value);
  applyTheme(theme.value);
}

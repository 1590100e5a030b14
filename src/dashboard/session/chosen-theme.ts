/** The theme that the person has chosen, which the browser keeps, and which the styles read from the root element. */

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "quern-theme";

export function chosenTheme(): Theme {
  const text = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === text) ?? "system";
}

export function keepTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
}

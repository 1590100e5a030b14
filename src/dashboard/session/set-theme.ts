/** Runs before anything is drawn, so that a chosen theme does not flash. A script of its own, because it must not wait. */
import { applyTheme, chosenTheme } from "./chosen-theme.ts";

applyTheme(chosenTheme());

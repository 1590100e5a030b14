/** What is wrong with pages of the dashboard on one screen: barriers, widths, and faults of their scripts. */
import type { Browser } from "playwright-core";
import { barriers, newContext, type Scheme, signedIn, takePicture } from "./browser.ts";
import { eventually } from "./eventually.ts";
import type { TestServer } from "./server.ts";

/** A name for its picture, its address below `/-/ui/`, and a text that shows that its content has come. */
export type CheckedPage = readonly [name: string, path: string, content: string];

/** Opens each page, and takes its picture. Resolves to the problems by the name of the page; `faults` is of all. */
export async function problemsOf(
  [browser, server]: readonly [Browser, TestServer],
  pages: readonly CheckedPage[],
  [scheme, width]: readonly [Scheme, number],
): Promise<Record<string, string[]>> {
  const context = await newContext(browser, scheme, width);
  const { page, faults } = await signedIn(context, server);
  const found: Record<string, string[]> = {};
  for (const [name, path, content] of pages) {
    await page.goto(`${server.baseUrl}/-/ui/${path}`);
    await page.locator("main").getByText(content).first().waitFor();
    await eventually("it has loaded", () =>
      page.evaluate<boolean>('document.querySelector("[aria-busy=true]") === null'),
    );
    await takePicture(page, `${name}-${scheme}-${width}`);
    const beyond = await page.evaluate<number>(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    const problems = [...(await barriers(page)), ...(beyond > 0 ? [`${beyond} pixels too wide`] : [])];
    if (problems.length > 0) found[name] = problems;
  }
  await context.close();
  return faults.length > 0 ? { ...found, faults } : found;
}

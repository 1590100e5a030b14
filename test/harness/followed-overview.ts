/** The overview as a page follows it: the first event, with each later one applied to it. */
import type { OverviewChanges, OverviewShown } from "../../src/contracts/http/overview-operations.ts";

export class FollowedOverview {
  /** Undefined until the first event. */
  shown: OverviewShown | undefined;
  /** Every event that came, by its name. */
  readonly events: string[] = [];
  error: { code: string } | undefined;
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;
  private readonly left = new AbortController();

  constructor(baseUrl: string, key: string) {
    this.ended = this.follow(`${baseUrl}/-/overview`, key).catch(() => {});
  }

  leave(): Promise<void> {
    this.left.abort();
    return this.ended;
  }

  private async follow(url: string, key: string): Promise<void> {
    const headers = { accept: "text/event-stream", authorization: `Bearer ${key}` };
    const response = await fetch(url, { headers, signal: this.left.signal });
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body!) {
      const events = (text + decoder.decode(chunk, { stream: true })).split("\n\n");
      text = events.pop()!;
      for (const event of events) this.take(event);
    }
  }

  private take(text: string): void {
    const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(text) ?? [];
    this.events.push(event ?? "comment");
    if (event === "overview") this.shown = JSON.parse(data!) as OverviewShown;
    if (event === "error") this.error = JSON.parse(data!) as { code: string };
    if (event === "changes") this.shown = applied(this.shown!, JSON.parse(data!) as OverviewChanges);
  }
}

function applied(shown: OverviewShown, changes: OverviewChanges): OverviewShown {
  const { apis = [], apis_gone = [], ...parts } = changes;
  const isKept = ({ name }: { name: string }) =>
    !apis_gone.includes(name) && !apis.some((api) => api.name === name);
  const all = [...shown.apis.filter(isKept), ...apis];
  return { ...shown, ...parts, apis: all.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

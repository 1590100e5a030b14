/** Reads server-sent events (HTML standard, section 9.2.6) from a response. */

export interface ServerEvent {
  name: string;
  data: string;
}

/** The complete events in a text, and the rest that may still grow. Pure. */
export function takeEvents(text: string): { events: ServerEvent[]; rest: string } {
  const blocks = text.split(/\r?\n\r?\n/);
  const rest = blocks.pop()!;
  return { events: blocks.map(eventOf).filter(({ data }) => data !== ""), rest };
}

function eventOf(block: string): ServerEvent {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
    if (field === "event") name = value!;
    if (field === "data") data.push(value!);
  }
  return { name, data: data.join("\n") };
}

/** Ends when the response ends, or throws if its connection is lost or says nothing for `silentMaxMs`. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  silentMaxMs: number,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await within(silentMaxMs, reader.read());
      if (done) return;
      const { events, rest } = takeEvents(text + decoder.decode(value, { stream: true }));
      text = rest;
      yield* events;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the connection is silent")), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

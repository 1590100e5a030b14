/** Limits the responses that the SDK of AWS reads: it reads each to its end, which a server need not send. */
import type { Readable } from "node:stream";
import { STORE_ERROR_PARSED_BYTES_MAX } from "../../contracts/limits/stores.ts";
import { textOfStore } from "../text-of-store.ts";

interface Client {
  middlewareStack: { addRelativeTo(step: never, where: never): void };
}
/** The step of the SDK that receives a response. */
type Next = (args: object) => Promise<{ response: unknown; output: object }>;
/** The most bytes of a response with this status to this command. If undefined, the caller reads the body. */
type BytesMax = (status: number, command: string) => number | undefined;

export function boundAnswers(client: Client, bytesMax: BytesMax): void {
  const step = (next: Next, context: { commandName: string }) => async (args: object) => {
    const result = await next(args);
    const response = result.response as { statusCode: number; body: Readable };
    const bytes = bytesMax(response.statusCode, context.commandName);
    if (bytes === undefined) return result;
    const text = await textOfStore(response.body, bytes);
    const isParsed = response.statusCode < 300 || text.length <= STORE_ERROR_PARSED_BYTES_MAX;
    const body = Buffer.from(isParsed ? text : "");
    return { ...result, response: Object.assign(response, { body }) };
  };
  const where = { name: "boundAnswers", relation: "after", toMiddleware: "deserializerMiddleware" };
  client.middlewareStack.addRelativeTo(step as never, where as never);
}

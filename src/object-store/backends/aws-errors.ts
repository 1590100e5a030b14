/** What the SDK of AWS says: hides a request's credentials in the errors that it makes of a store's response. */
import { SentCredentials } from "../sent-credentials.ts";

interface Client {
  middlewareStack: { addRelativeTo(step: never, where: never): void };
}
/** The step of the SDK that makes an error of a response; its request is signed. */
type Next = (args: { request: unknown }) => Promise<unknown>;

const nothing = () => {};
/** As the logger of a client. Without it, the SDK prints on the console of the process, also what a server has answered. */
export const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export function hideCredentials(client: Client): void {
  const step = (next: Next) => async (args: { request: unknown }) => {
    try {
      return await next(args);
    } catch (error) {
      throw new SentCredentials((args.request as { headers: object }).headers).hideInError(error);
    }
  };
  const where = { name: "hideCredentials", relation: "before", toMiddleware: "deserializerMiddleware" };
  client.middlewareStack.addRelativeTo(step as never, where as never);
}

/** Hides a request's credentials in the errors that the SDK of AWS makes of a store's response. */
import { SentCredentials } from "../sent-credentials.ts";

interface Client {
  middlewareStack: { addRelativeTo(step: never, where: never): void };
}
/** The step of the SDK that makes an error of a response; its request is signed. */
type Next = (args: { request: unknown }) => Promise<unknown>;

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

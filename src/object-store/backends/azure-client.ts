/**
 * Sends the requests of Azure's client, and reads pages of listings in its place. The client reads a response to its
 * end, which a server need not send. It also builds its objects on the event loop: 5,000 keys a page took 100 ms, and a
 * name of 5 MB ten seconds.
 */
import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import type { HttpOperationResponse, IHttpClient, RestError, WebResource } from "@azure/storage-blob";
import {
  STORE_ERROR_BYTES_MAX,
  STORE_ERROR_PARSED_BYTES_MAX,
  STORE_PAGE_BYTES_MAX,
} from "../../contracts/limits/stores.ts";
import type { ListingPage } from "../listing/listing-page.ts";
import { isWhole, objectOf, readXmlEntries, tokenOf } from "../listing/listing-xml.ts";
import { StorePages } from "../listing/store-pages.ts";
import { SentCredentials } from "../sent-credentials.ts";
import { textOfStore } from "../text-of-store.ts";

/** The client gets this instead of a page. */
const NOTHING =
  '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="" ContainerName=""><Blobs /><NextMarker /></EnumerationResults>';

export class AzureClient implements IHttpClient {
  private readonly storePages = new StorePages(STORE_PAGE_BYTES_MAX);
  private readonly restError: typeof RestError;
  /** By the abort signal of the listing's request. */
  private readonly pages = new WeakMap<object, ListingPage>();

  constructor(restError: typeof RestError) {
    this.restError = restError;
  }

  /** The page that was sent for the listing with this signal. */
  pageOf(signal: AbortSignal): ListingPage {
    const page = this.pages.get(signal);
    if (page === undefined) throw new Error("its response to a listing is not a listing");
    return page;
  }

  async sendRequest(request: WebResource): Promise<HttpOperationResponse> {
    const sent = new SentCredentials(request.headers.toJson(), request.url);
    const response = await this.respond(request).catch((error: unknown) => {
      throw sent.hideInError(error);
    });
    const { status, bodyAsText } = response;
    return status < 300 || !bodyAsText ? response : { ...response, bodyAsText: sent.hideIn(bodyAsText) };
  }

  private async respond(request: WebResource): Promise<HttpOperationResponse> {
    const answer = await this.answerTo(request);
    const headers = request.headers.clone();
    for (const name of headers.headerNames()) headers.remove(name);
    for (const [name, value] of Object.entries(answer.headers)) headers.set(name, String(value));
    const status = answer.statusCode!;
    const response = { request, headers, status };
    if (request.method === "HEAD") {
      answer.resume();
      return response;
    }
    if (status >= 300) {
      const text = await textOfStore(answer, STORE_ERROR_BYTES_MAX);
      return { ...response, bodyAsText: text.length > STORE_ERROR_PARSED_BYTES_MAX ? "" : text };
    }
    if (request.method !== "GET") {
      // The connection is free for the next request once the response was read.
      await textOfStore(answer, STORE_ERROR_BYTES_MAX);
      return response;
    }
    if (new URL(request.url).searchParams.get("comp") !== "list")
      return { ...response, readableStreamBody: answer };
    this.pages.set(request.abortSignal!, await this.storePages.read(answer, parsePage));
    headers.set("content-type", "application/xml");
    return { ...response, bodyAsText: NOTHING };
  }

  private async answerTo(request: WebResource): Promise<IncomingMessage> {
    const { url, method, agent, abortSignal, body } = request;
    const options = {
      method,
      headers: request.headers.toJson({ preserveCase: true }),
      signal: abortSignal as AbortSignal,
      ...(agent === undefined ? {} : { agent: agent as http.Agent }),
    };
    const outgoing = (url.startsWith("https:") ? https : http).request(url, options).end(body);
    try {
      const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
      return answer;
    } catch (error) {
      // The client retries only errors of its own class.
      const { name, message, code } = error as NodeJS.ErrnoException;
      throw name === "AbortError"
        ? error
        : new this.restError(message, { code: code ?? "REQUEST_SEND_ERROR" });
    }
  }
}

/** Throws if a listing is incomplete: it must not count as the last page. */
export async function parsePage(xml: string): Promise<ListingPage> {
  if (!isWhole(xml, "EnumerationResults") || !/<Blobs\s*\/?>/.test(xml))
    throw new Error(`its response to a listing is not a listing: ${JSON.stringify(xml.slice(0, 100))}`);
  const objects = await readXmlEntries(xml, "Blob", (entry) => {
    const isEncoded = entry.includes('<Name Encoded="true">');
    return objectOf(isEncoded ? entry.replace(' Encoded="true"', "") : entry, {
      key: "Name",
      size: "Content-Length",
      decode: isEncoded ? decodeURIComponent : (name) => name,
    });
  });
  return { objects, nextToken: tokenOf(xml, "NextMarker") || undefined };
}

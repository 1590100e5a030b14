/** The whole page: signed out, or the navigation beside the page that the address names. */
import { useErrorBoundary, useMemo } from "preact/hooks";
import { Toasts } from "../actions/toasts.tsx";
import { address } from "../address/address.ts";
import { live } from "../live/live.ts";
import { ErrorNote, Loading } from "../parts/notes.tsx";
import { asError } from "../server/problem.ts";
import { isSignedIn, session } from "../session/session.ts";
import { Navigation } from "./navigation.tsx";
import { pageOf } from "./routes.tsx";
import { SignIn } from "./sign-in.tsx";

interface AppProps {
  /** The one-time code is on its way to the server. */
  isSigningIn: boolean;
  failure: Error | undefined;
}

/** Until the server has said who is signed in, the page is drawn as for somebody who is, and its requests go out. */
export function App({ isSigningIn, failure }: AppProps) {
  const key = address.value.segments.join("/");
  // The same element, so that an answer to somebody else does not draw the page again.
  const page = useMemo(() => <Page key={key} />, [key]);
  if (isSigningIn) return <Loading />;
  if (session.value === undefined && failure)
    return <ErrorNote error={failure} again={() => location.reload()} />;
  const isSignedOut = session.value !== undefined && !isSignedIn.value;
  if (isSignedOut || live.value.state === "signed-out") return <SignIn failure={failure} />;
  return (
    <div class="shell">
      <Navigation />
      <main id="main">{page}</main>
      <Toasts />
    </div>
  );
}

/** A fault in one page leaves the others usable. */
function Page() {
  const [thrown] = useErrorBoundary();
  if (thrown !== undefined) return <ErrorNote error={asError(thrown)} again={() => location.reload()} />;
  const { title, page } = pageOf(address.value.segments);
  document.title = title === "" ? "Quern" : `${title} · Quern`;
  return page;
}

/** The declarative applications. */
import { counted } from "../../format/numbers.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Link } from "../../parts/link.tsx";
import { Empty, Loaded } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { useResource } from "../../server/use-resource.ts";
import type { ApplicationList, ApplicationState } from "../../shapes.ts";

export function ApplicationsPage() {
  const list = useResource<ApplicationList>("/-/applications", { everyMs: 5000 });
  return (
    <>
      <PageHead title="Applications" />
      <Loaded resource={list} lines={4}>
        {({ applications }) =>
          applications.length === 0 ? (
            <Empty title="No declarative application is deployed" command="quern deploy">
              An application is a directory with an <code>app.yaml</code>: it says where the data is, and
              which models are trained from it.
            </Empty>
          ) : (
            <Scroll label="applications">
              <table>
                <thead>
                  <tr>
                    <th>Application</th>
                    <th>Environment</th>
                    <th>State</th>
                    <th>Resources</th>
                    <th>Data of</th>
                  </tr>
                </thead>
                <tbody>
                  {applications.map((app) => (
                    <tr key={app.name}>
                      <td>
                        <Link to={["applications", app.name]}>{app.name}</Link>
                      </td>
                      <td>{app.environment}</td>
                      <td>
                        <Status of={stateOf(app)} />
                      </td>
                      <td>{counted(app.resources.length, "resource")}</td>
                      <td>
                        <Time at={app.data_version} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          )
        }
      </Loaded>
    </>
  );
}

/** One word for an application: what is wrong, or computing, or ready. */
export function stateOf({ resources, is_working }: ApplicationState): string {
  if (resources.some(({ status }) => status === "error")) return "error";
  return is_working ? "computing" : "ready";
}

/** The page of each address. */
import type { VNode } from "preact";
import { AuditPage } from "../pages/access/audit-page.tsx";
import { KeysPage } from "../pages/access/keys-page.tsx";
import { ApiPage } from "../pages/api/api-page.tsx";
import { ApisPage } from "../pages/apis/apis-page.tsx";
import { ApplicationPage } from "../pages/applications/application-page.tsx";
import { ApplicationsPage } from "../pages/applications/applications-page.tsx";
import { JobPage } from "../pages/job/job-page.tsx";
import { JobsPage } from "../pages/jobs/jobs-page.tsx";
import { OverviewPage } from "../pages/overview/overview-page.tsx";
import { QueuePage } from "../pages/queues/queue-page.tsx";
import { QueuesPage } from "../pages/queues/queues-page.tsx";
import { PageHead } from "../parts/facts.tsx";
import { Link } from "../parts/link.tsx";

interface Routed {
  title: string;
  page: VNode;
}

export function pageOf([section = "", name, id]: readonly string[]): Routed {
  switch (section) {
    case "":
      return { title: "Overview", page: <OverviewPage /> };
    case "apis":
      return name === undefined
        ? { title: "APIs", page: <ApisPage /> }
        : { title: name, page: <ApiPage name={name} /> };
    case "jobs":
      return name === undefined || id === undefined
        ? { title: "Jobs", page: <JobsPage /> }
        : { title: `${name} ${id.slice(-8)}`, page: <JobPage api={name} job={id} /> };
    case "queues":
      return name === undefined
        ? { title: "Queues", page: <QueuesPage /> }
        : { title: name, page: <QueuePage name={name} /> };
    case "applications":
      return name === undefined
        ? { title: "Applications", page: <ApplicationsPage /> }
        : { title: name, page: <ApplicationPage name={name} /> };
    case "keys":
      return { title: "Keys", page: <KeysPage /> };
    case "audit":
      return { title: "Audit", page: <AuditPage /> };
    default:
      return { title: "Not found", page: <NotFound section={section} /> };
  }
}

function NotFound({ section }: { section: string }) {
  return (
    <>
      <PageHead title="There is no such page" />
      <p>
        Nothing is at “{section}”. <Link to={[]}>The overview</Link> has everything.
      </p>
    </>
  );
}

/**
 * Builds what keeps the server's files in an object store (`--state`): projects, what applications computed, and the
 * removal of what nothing needs. Without a state, all of them do nothing.
 */
import { contentId, filesOf } from "../apis/projects/project-files.ts";
import { INCOMING } from "../apis/projects/project-store.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { applicationDirectory, projectDirectory } from "../contracts/data-layout.ts";
import { PatientStore } from "../object-store/patient-store.ts";
import { Garbage } from "../state/garbage.ts";
import { forRequest, patienceOf } from "../state/state-store.ts";
import { ON_DISK_ONLY, StoredTrees, type Trees } from "../state/trees.ts";
import { StateWatch } from "../state/watch.ts";
import type { Infrastructure } from "./infrastructure.ts";
import type { SettledState } from "./settle-state.ts";

export interface StateDeps {
  dataDir: string;
  log: Log;
  /** Aborted when the controller stops. */
  leaving: AbortSignal;
}

/** The stores that trees use: one for requests, which waits for moments, and one for work that goes on by itself. */
function storesOf({ store }: SettledState, { log, leaving }: StateDeps) {
  return {
    store: forRequest(store, log, leaving),
    patient: new PatientStore(store, patienceOf(log, leaving)),
  };
}

/** Projects as they were deployed, and those of models. */
export function projectTrees(state: SettledState | undefined, deps: StateDeps): Trees {
  if (state === undefined) return ON_DISK_ONLY;
  const directoryOf = (id: string) => projectDirectory(deps.dataDir, id);
  return new StoredTrees({
    ...storesOf(state, deps),
    kind: "projects",
    directoryOf,
    incomingOf: (_, chance) => directoryOf(`${INCOMING}${chance}`),
    // The id of a model's project is that of the model, not that of its files.
    isWhole: async (id, directory) => id.startsWith("model-") || contentId(await filesOf(directory)) === id,
  });
}

/** What applications computed. Names are `<application>/<id>`. */
export function applicationTrees({ state, ...deps }: StateDeps & { state: SettledState | undefined }): Trees {
  if (state === undefined) return ON_DISK_ONLY;
  const directoryOf = (name: string) => applicationDirectory(deps.dataDir, name);
  return new StoredTrees({
    ...storesOf(state, deps),
    kind: "applications",
    directoryOf,
    incomingOf: (name, chance) => directoryOf(`${name}.incoming-${chance}`),
  });
}

export interface StateServices {
  services: Service[];
  /** Removes soon what has become useless. */
  removeSoon: () => void;
}

export function buildStateServices({ state, epoch, log, workerDeps }: Infrastructure): StateServices {
  if (state === undefined) return { services: [], removeSoon: () => {} };
  const { store, token, place } = state;
  const garbage = new Garbage({ db: workerDeps.db, log, store, epoch });
  const watch = new StateWatch({
    ...{ store, log, token, address: place.address },
    // As if the parent had asked: workers stop too. The next start says what a person must do.
    onTaken: () => process.kill(process.pid, "SIGTERM"),
  });
  return { services: [watch, garbage], removeSoon: () => garbage.soon() };
}

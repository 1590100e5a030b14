/** The thread that reads applications (read-application.ts). */
import { serveThread } from "../../engine/side-work.ts";
import { type ApplicationTask, type ReadApplication, readHere } from "./read-application.ts";

serveThread((task: ApplicationTask): ReadApplication => readHere(task));

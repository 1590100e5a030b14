/** The thread that reads long configurations (read-config.ts). */
import { serveThread } from "../engine/side-work.ts";
import { type ConfigTask, readPlaced } from "./read-config.ts";

serveThread(({ text, file }: ConfigTask) => readPlaced(text, file));

/** The table of all settings: those of the server, and those of the command line. */
import { SERVER_SETTINGS } from "./server-settings.ts";

/** Settings of the command line. */
const CLIENT_SETTINGS = {
  host: {
    env: "QUERN_HOST",
    option: "",
    default: "http://127.0.0.1:8420",
    unit: "URL",
    help: "server that the command line uses",
  },
  apiKey: {
    env: "QUERN_API_KEY",
    option: "",
    default: "",
    unit: "key",
    help: "key that the command line sends; the default is the admin token of the data directory",
  },
} as const;

export const SETTINGS = { ...SERVER_SETTINGS, ...CLIENT_SETTINGS };

export type SettingName = keyof typeof SETTINGS;

// The effective configuration: `/console/configuration`.
import { getJson, type Answer } from "./request";

export interface Configuration {
  file: string | null;
  text: string;
}

export const getConfiguration = (): Promise<Answer<Configuration>> => getJson<Configuration>("/console/configuration");

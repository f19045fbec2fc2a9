import { render } from "preact";
import { App } from "./app";
import { askForSession } from "./data/session";
import { start } from "./data/store";
import { followHash } from "./router";
import { listenToKeys } from "./shortcuts";
import { applyTheme } from "./ui/theme";

applyTheme();
followHash();
listenToKeys();
start();
void askForSession();

const root = document.getElementById("app");
if (root) {
  // What the document shows until the program is here.
  root.replaceChildren();
  render(<App />, root);
}

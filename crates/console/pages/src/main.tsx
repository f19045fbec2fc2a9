import { render } from "preact";
import { App } from "./app";
import { start } from "./data/store";
import { followHash } from "./router";
import { listenToKeys } from "./shortcuts";
import { applyTheme } from "./ui/theme";

applyTheme();
followHash();
listenToKeys();
start();

const root = document.getElementById("app");
if (root) render(<App />, root);

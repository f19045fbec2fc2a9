// Builds `dist/`, which is committed: `cargo build` embeds it and needs no Node. So names have no hash, and the same
// sources give the same bytes.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The licences of what is built in ask for their notice in every copy.
const notice = readFileSync(new URL("licenses.txt", import.meta.url), "utf8").trim();

export default defineConfig({
  base: "/console/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: ["chrome123", "firefox121", "safari17.5"],
    assetsDir: "",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    sourcemap: false,
    rollupOptions: {
      output: {
        codeSplitting: false,
        postBanner: `/*!\n${notice}\n*/`,
        entryFileNames: "app.js",
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith(".css")) ? "app.css" : "[name][extname]"),
      },
    },
  },
});

// build.mjs: bundles src into dist, and the part of a report into the folder of its package. The Go program embeds both. Node and npm are needed here only.
import { build } from "esbuild";
import { copyFile } from "node:fs/promises";

const options = {
  bundle: true,
  minify: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  charset: "utf8",
};
await build({ ...options, entryPoints: { app: "src/main.jsx", style: "src/style.css" }, outdir: "dist", format: "esm" });
await build({ ...options, entryPoints: { script: "src/report.jsx", style: "src/report.css" }, outdir: "../../../report/page/dist", format: "iife" });
for (const name of ["index.html", "icon.svg"]) await copyFile(`src/${name}`, `dist/${name}`);

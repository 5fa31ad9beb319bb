// build.mjs: bundles src into dist, which the Go program embeds. Node and npm are needed here only.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";

const out = process.argv[2] ?? "dist";
await mkdir(out, { recursive: true });
await build({
  entryPoints: { app: "src/main.jsx", style: "src/style.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  charset: "utf8",
});
await copyFile("src/index.html", `${out}/index.html`);
await copyFile("src/icon.svg", `${out}/icon.svg`);

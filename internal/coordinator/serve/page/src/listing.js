// listing.js: the items of a report, whose data are in its page. Its columns are those of Listing in internal/report/page.

import { compareNumbers } from "./tables.js";

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const { items, pictures } = read("report-data");
const { cells, metrics, figures } = items;
const cellOf = (row) => cells[items.cell[row]];
const distinct = (pairs) => [...new Map(pairs)];

export { metrics };
export const total = items.id.length;
export const rowOf = (id) => items.id.indexOf(id);
export const idOf = (row) => items.id[row];
export const measurementOf = (row) => items.measurement[row];

// itemOf returns the item of a row.
export function itemOf(row) {
  const id = items.id[row];
  const cell = cellOf(row);
  const file = (bit, name) => (items.pictures[row] & bit ? `items/${encodeURIComponent(id)}/${name}` : null);
  return {
    row, id, name: items.names[items.name[row]], run: items.run[row], ...cell, how: items.hows[items.how[row]], warnings: items.warnings[row],
    scores: Object.fromEntries(Object.entries(figures).map(([name, values]) => [name, values[row]])), variance: cell.photons ? "noise variance" : "σ²",
    // The bits are in the order of entry.ItemFiles.
    truth: file(1, "truth.png"), measurement: file(2, "measurement.png"), restored: file(4, "restored.png"), trace: file(8, "trace.json"), further: pictures[id] ?? [],
  };
}

// The choices of the filters. Variants are the settings that tell the cells of a task and method apart.
export const tasks = distinct(cells.map((c) => [c.task, c.label]));
export const methods = distinct(cells.map((c) => [c.method, c.method]));
export const variants = distinct(cells.filter((c) => c.variant !== "").map((c) => [c.variant, c.variant]));

const { psnr, residual, residual_ratio: ratio, baseline_psnr: baseline } = figures;
const gain = (row) => (psnr[row] === null || baseline[row] === null ? null : psnr[row] - baseline[row]);
const by = (value, sign) => (a, b) => compareNumbers(value(a), value(b), sign) || a - b;
const sorts = {
  psnr: by((row) => psnr[row], 1), gain: by(gain, 1), ratio: by((row) => ratio[row], -1), residual: by((row) => residual[row], -1),
};
export const orders = [["psnr", "lowest PSNR first"], ["gain", "smallest gain first"], ["ratio", "largest residual over noise variance first"], ["residual", "largest residual first"]];

// search returns the rows that match, in the chosen order.
export function search({ q = "", task, method, variant, order }) {
  const words = q.toLowerCase().split(/\s+/);
  const named = items.names.map((name) => words.every((w) => name.toLowerCase().includes(w)));
  const wanted = cells.map((c) => (!task || c.task === task) && (!method || c.method === method) && (!variant || c.variant === variant));
  const rows = [...items.id.keys()].filter((row) => named[items.name[row]] && wanted[items.cell[row]]);
  return sorts[order] ? rows.sort(sorts[order]) : rows;
}

// approachesOf returns the rows with the measurement of a row, in the order of the report.
let rowsOf = null;
export function approachesOf(row) {
  rowsOf ??= Map.groupBy(items.id.keys(), measurementOf);
  return rowsOf.get(measurementOf(row));
}

// curvesOf returns the solver's curves of a row, undefined if the page does not hold them. The first call parses all of them.
let curves = null;
export function curvesOf(row) {
  curves ??= read("report-curves");
  return curves[row];
}

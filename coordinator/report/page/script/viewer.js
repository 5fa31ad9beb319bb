// viewer.js: all restorations of one measurement beside its truth, with one zoom for all pictures and an error map.

// approachesOf returns the items with the measurement of an item, in the order of the report.
let rowsOfMeasurement = null;
function approachesOf(row) {
  rowsOfMeasurement ??= Map.groupBy(items.measurement.keys(), (r) => items.measurement[r]);
  return rowsOfMeasurement.get(items.measurement[row]);
}

const maxPanels = 48;

const viewer = byId("viewer");
const stage = byId("stage");
let shownRow = -1;

const chosenLayer = () => viewer.querySelector("[name=layer]:checked").value;

function divide(share) {
  byId("divider").value = Math.round(share * 100);
  stage.style.setProperty("--cut", `${byId("divider").value}%`);
}

const zoom = connectZoom(stage, {
  show: (text) => { byId("zoom-level").textContent = text; },
  dividing: () => chosenLayer().startsWith("divide"),
  divide,
});

// panel shows one picture; over is a second picture for the error map or the divider.
function panel(title, path, alt, figures, over) {
  const inner = element("div", { class: "inner" }, picture(path, alt));
  if (over && path !== null) inner.append(Object.assign(picture(over, ""), { className: "over" }));
  return element("figure", { class: over ? "panel restored" : "panel" },
    element("div", { class: "frame" }, inner),
    element("figcaption", {}, element("strong", {}, title), figures ? element("span", {}, figures) : null));
}

function scoresText(row) {
  const parts = [];
  if (scores.psnr[row] !== null) parts.push(`${decimals(scores.psnr[row], 2)} dB`);
  if (scores.ssim[row] !== null) parts.push(`SSIM ${decimals(scores.ssim[row], 3)}`);
  if (items.ratio[row] !== null) parts.push(`residual ${decimals(items.ratio[row], 2)} ${varianceOf(row)}`);
  return parts.join(" · ");
}

// approachText names what distinguishes an item from the others of its measurement.
function approachText(row, others) {
  const c = cellOf(row);
  const differ = (get) => others.some((r) => get(r) !== get(row));
  const parts = [c.method];
  if (c.variant !== "" && differ((r) => cellOf(r).variant)) parts.push(c.variant);
  if (differ((r) => items.run[r])) parts.push(`run ${items.run[row]}`);
  return parts.join(", ");
}

// showLayer shows the pictures, their error maps, or a second picture on the left of the divider.
function showLayer() {
  const layer = chosenLayer();
  stage.dataset.layer = layer;
  byId("error-scale").hidden = layer !== "error";
  byId("divider-label").hidden = !layer.startsWith("divide");
  if (shownRow < 0) return;
  const over = pathOf(shownRow, layer === "divide-measurement" ? "measurement" : "truth");
  for (const img of stage.querySelectorAll(".over")) {
    if (over !== null && img.getAttribute("src") !== over) img.src = over;
  }
  // The mean over the channels, as a share of the scale's upper end.
  const gain = 1 / Number(byId("error-range").value) / 3;
  const line = `${gain} ${gain} ${gain} 0 0 `;
  byId("error-gain").setAttribute("values", `${line}${line}${line}0 0 0 1 0`);
  byId("error-end").textContent = byId("error-range").value;
}

function openViewer(row) {
  const rows = approachesOf(row);
  const moved = shownRow < 0 || items.measurement[shownRow] !== items.measurement[row];
  shownRow = row;
  const name = nameOf(row);
  const c = cellOf(row);
  byId("viewer-title").textContent = name;
  byId("viewer-about").textContent = [c.label, c.params.replaceAll(";", ", "), `σ ${c.sigma}`, c.photons ? `${c.photons} photons` : ""].filter((t) => t !== "").join(" · ");
  const truth = pathOf(row, "truth");
  const measurement = pathOf(row, "measurement");
  for (const choice of viewer.querySelectorAll("[name=layer]")) {
    choice.disabled = (choice.value === "divide-measurement" && measurement === null)
      || (["error", "divide-truth"].includes(choice.value) && truth === null);
    if (choice.disabled && choice.checked) viewer.querySelector("[name=layer][value=picture]").checked = true;
  }
  const panels = [];
  if (truth !== null) panels.push(panel("Truth", truth, `Truth: ${name}`));
  if (measurement !== null) {
    const baseline = items.baseline[row];
    panels.push(panel("Measurement", measurement, `Measurement: ${name}`, baseline === null ? "" : `${decimals(baseline, 2)} dB`));
  }
  for (const r of rows.slice(0, maxPanels)) {
    const title = approachText(r, rows);
    const shown = panel(title, pathOf(r, "restored"), `Restored: ${name}, ${title}`, scoresText(r), truth ?? measurement);
    shown.classList.toggle("current", r === row && rows.length > 1);
    panels.push(shown);
    for (const p of data.pictures[items.id[r]] ?? []) panels.push(panel(p.title, p.path, `${p.title}: ${name}, ${title}`));
  }
  byId("viewer-more").textContent = rows.length > maxPanels ? `The first ${maxPanels} of ${rows.length} restorations are shown.` : "";
  stage.replaceChildren(...panels);
  showLayer();
  if (moved) zoom.reset();
  if (!viewer.open) viewer.showModal();
  rememberState(byId("toolbar"), items.id[row]);
}

// stepViewer opens the next match with another measurement.
function stepViewer(by) {
  const from = matches.indexOf(shownRow);
  for (let i = 1; i <= matches.length; i++) {
    const row = matches[(from + by * i + matches.length * i) % matches.length];
    if (items.measurement[row] !== items.measurement[shownRow]) return openViewer(row);
  }
}

function connectViewer() {
  viewer.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { n: 1, p: -1 }[event.key];
    if (step) stepViewer(step);
    else if (!zoom.key(event.key)) return;
    event.preventDefault();
  });
  const forget = () => rememberState(byId("toolbar"), null);
  viewer.addEventListener("cancel", forget); // the Escape key
  viewer.addEventListener("change", showLayer);
  byId("divider").addEventListener("input", () => divide(byId("divider").value / 100));
  for (const [id, action] of [
    ["viewer-close", () => { viewer.close(); forget(); }], ["viewer-previous", () => stepViewer(-1)], ["viewer-next", () => stepViewer(1)],
    ["zoom-in", () => zoom.at(1.5)], ["zoom-out", () => zoom.at(1 / 1.5)], ["zoom-reset", zoom.reset],
  ]) byId(id).addEventListener("click", action);
  divide(0.5);
}

// viewer.js: all restorations of one measurement beside its truth, with one zoom for all pictures and an error map.

// approachesOf returns the items with the measurement of an item, in the order of the report.
let rowsOfMeasurement = null;
function approachesOf(row) {
  rowsOfMeasurement ??= Map.groupBy(items.measurement.keys(), (r) => items.measurement[r]);
  return rowsOfMeasurement.get(items.measurement[row]);
}

const maxPanels = 48;
const maxScale = 32;

const viewer = byId("viewer");
const stage = byId("stage");
const view = { row: -1, scale: 1, x: 0, y: 0 };

// place applies the zoom: x and y are the offsets of the enlarged picture in shares of its frame.
function place() {
  view.x = Math.min(0, Math.max(1 - view.scale, view.x));
  view.y = Math.min(0, Math.max(1 - view.scale, view.y));
  stage.style.setProperty("--scale", view.scale);
  stage.style.setProperty("--x", `${view.x * 100}%`);
  stage.style.setProperty("--y", `${view.y * 100}%`);
  stage.classList.toggle("zoomed", view.scale > 1);
  byId("zoom-level").textContent = `${Math.round(view.scale * 100)} %`;
}

// zoomAt enlarges by a factor around a point, given in shares of a frame.
function zoomAt(factor, px, py) {
  const scale = Math.min(maxScale, Math.max(1, view.scale * factor));
  view.x = px - (px - view.x) * scale / view.scale;
  view.y = py - (py - view.y) * scale / view.scale;
  view.scale = scale;
  place();
}

function pan(dx, dy) {
  view.x += dx;
  view.y += dy;
  place();
}

function resetZoom() {
  Object.assign(view, { scale: 1, x: 0, y: 0 });
  place();
}

// pointIn returns the position of an event in shares of its frame.
function pointIn(frame, event) {
  const box = frame.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

const chosenLayer = () => viewer.querySelector("[name=layer]:checked").value;

function divide(share) {
  byId("divider").value = Math.round(share * 100);
  stage.style.setProperty("--cut", `${byId("divider").value}%`);
}

// connectGestures: the wheel and two fingers zoom, a drag pans; it moves the divider of pictures that are not enlarged.
function connectGestures() {
  const fingers = new Map();
  let spread = 0;
  const distance = () => {
    const [a, b] = [...fingers.values()];
    return fingers.size === 2 ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 0;
  };
  const frameOf = (event) => event.target.closest(".frame");
  stage.addEventListener("wheel", (event) => {
    const frame = frameOf(event);
    if (!frame) return;
    event.preventDefault();
    zoomAt(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 200), ...pointIn(frame, event));
  }, { passive: false });
  stage.addEventListener("pointerdown", (event) => {
    if (!frameOf(event)) return;
    fingers.set(event.pointerId, event);
    spread = distance();
  });
  const lift = (event) => {
    fingers.delete(event.pointerId);
    spread = 0;
  };
  stage.addEventListener("pointerup", lift);
  stage.addEventListener("pointercancel", lift);
  stage.addEventListener("pointerleave", lift);
  stage.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    const frame = frameOf(event);
    if (!before || !frame) return;
    fingers.set(event.pointerId, event);
    const box = frame.getBoundingClientRect();
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()];
      const now = distance();
      const middle = { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
      if (spread > 0) zoomAt(now / spread, ...pointIn(frame, middle));
      spread = now;
    } else if (view.scale === 1 && chosenLayer().startsWith("divide")) {
      divide(Math.min(1, Math.max(0, pointIn(frame, event)[0])));
    } else {
      pan((event.clientX - before.clientX) / box.width, (event.clientY - before.clientY) / box.height);
    }
  });
  stage.addEventListener("dblclick", resetZoom);
  viewer.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 0.1;
    const action = {
      "+": () => zoomAt(1.25, 0.5, 0.5), "=": () => zoomAt(1.25, 0.5, 0.5), "-": () => zoomAt(0.8, 0.5, 0.5), 0: resetZoom,
      ArrowLeft: () => pan(step, 0), ArrowRight: () => pan(-step, 0), ArrowUp: () => pan(0, step), ArrowDown: () => pan(0, -step),
      n: () => stepViewer(1), p: () => stepViewer(-1),
    }[event.key];
    if (!action || (event.key.startsWith("Arrow") && view.scale === 1)) return;
    event.preventDefault();
    action();
  });
}

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
  if (items.psnr[row] !== null) parts.push(`${decimals(items.psnr[row], 2)} dB`);
  if (items.ssim[row] !== null) parts.push(`SSIM ${decimals(items.ssim[row], 3)}`);
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
  if (view.row < 0) return;
  const over = pathOf(view.row, layer === "divide-measurement" ? "measurement" : "truth");
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
  const moved = view.row < 0 || items.measurement[view.row] !== items.measurement[row];
  view.row = row;
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
  if (moved) resetZoom();
  if (!viewer.open) viewer.showModal();
  rememberState(byId("toolbar"), items.id[row]);
}

// stepViewer opens the next match with another measurement.
function stepViewer(by) {
  const from = matches.indexOf(view.row);
  for (let i = 1; i <= matches.length; i++) {
    const row = matches[(from + by * i + matches.length * i) % matches.length];
    if (items.measurement[row] !== items.measurement[view.row]) return openViewer(row);
  }
}

function connectViewer() {
  connectGestures();
  const forget = () => rememberState(byId("toolbar"), null);
  viewer.addEventListener("cancel", forget); // the Escape key
  viewer.addEventListener("change", showLayer);
  byId("divider").addEventListener("input", () => divide(byId("divider").value / 100));
  for (const [id, action] of [
    ["viewer-close", () => { viewer.close(); forget(); }], ["viewer-previous", () => stepViewer(-1)], ["viewer-next", () => stepViewer(1)],
    ["zoom-in", () => zoomAt(1.5, 0.5, 0.5)], ["zoom-out", () => zoomAt(1 / 1.5, 0.5, 0.5)], ["zoom-reset", resetZoom],
  ]) byId(id).addEventListener("click", action);
  divide(0.5);
}

// curves.js: the solver's curves of an item, drawn when its details are opened. A chart is one SVG with a logarithmic
// vertical axis for up to three curves.

// readCurves returns the curves of an item on the page, or undefined. The page parses all of them at the first call.
let parsedCurves = null;
function readCurves(row) {
  parsedCurves ??= JSON.parse(byId("report-curves").textContent);
  return parsedCurves[row];
}

const svgSpace = "http://www.w3.org/2000/svg";
const labels = { data_norm: "‖y − A(z)‖", primal_norm: "‖x − z‖", dual_norm: "‖u‖" };
const label = (name) => labels[name] ?? (name.startsWith("delta_") ? `‖Δ${name.slice(6)}‖` : name);
const titleOf = (name) => (name.endsWith("_norm") ? "Norms" : name.startsWith("delta_") ? "Increments" : "Other curves");

function groupsOf(curves) {
  const groups = [];
  for (const title of ["Norms", "Increments", "Other curves"]) {
    const series = curves.series.filter((s) => titleOf(s.name) === title).map((s) => [s.values, label(s.name)]);
    while (series.length > 0) groups.push({ title, series: series.splice(0, 3) });
  }
  return groups;
}

const box = { width: 300, height: 190, left: 40, right: 6, top: 8, bottom: 32 };

function svg(tag, attributes, text) {
  const node = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const short = (v) => {
  if (v === null || v === undefined) return "–";
  if (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5)) return v.toExponential(2);
  return String(Number(v.toPrecision(4)));
};

// logTicks are decades; if there are few, also their multiples 2 and 5.
function logTicks(low, high) {
  const ticks = [];
  const decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / 6));
  const factors = decades < 2 ? [1, 2, 5] : [1];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    if (e % every !== 0) continue;
    for (const f of factors) {
      const v = f * 10 ** e;
      if (v >= low * 0.999 && v <= high * 1.001) ticks.push(v);
    }
  }
  return ticks;
}

function stepTicks(first, last) {
  const raw = Math.max(1, (last - first) / 5);
  const power = 10 ** Math.floor(Math.log10(raw));
  const unit = [1, 2, 5, 10].map((f) => f * power).find((u) => u >= raw);
  const ticks = [];
  for (let v = Math.ceil(first / unit) * unit; v <= last; v += unit) ticks.push(v);
  return ticks;
}

const tickText = (v) => (v >= 1e4 || v < 1e-3 ? v.toExponential(0).replace("e+", "e") : String(Number(v.toPrecision(1))));

function drawChart(curves, group, name) {
  const figure = element("div", { class: "chart" }, element("h4", {}, group.title));
  const steps = curves.step;
  const positive = group.series.flatMap(([values]) => values).filter((v) => v > 0);
  let low = positive.length ? positive.reduce((a, b) => Math.min(a, b)) : 0.1;
  let high = positive.length ? positive.reduce((a, b) => Math.max(a, b)) : 1;
  if (high / low < 2) { low /= 1.5; high *= 1.5; }
  const first = steps[0];
  const last = steps[steps.length - 1];
  const x = (step) => box.left + (last > first ? (step - first) / (last - first) : 0.5) * (box.width - box.left - box.right);
  const y = (v) => box.top + Math.log(high / v) / Math.log(high / low) * (box.height - box.top - box.bottom);

  const ends = group.series.map(([values, label]) => `${label} from ${short(values[0])} to ${short(values.at(-1))}`);
  const chart = svg("svg", {
    class: "plot", viewBox: `0 0 ${box.width} ${box.height}`, role: "img", tabindex: 0,
    "aria-label": `${group.title} over ${last} solver steps of ${name}: ${ends.join("; ")}`,
  });
  for (const v of logTicks(low, high)) {
    chart.append(svg("line", { class: "grid", x1: box.left, x2: box.width - box.right, y1: y(v), y2: y(v) }));
    chart.append(svg("text", { x: box.left - 5, y: y(v) + 3.5, "text-anchor": "end" }, tickText(v)));
  }
  const floor = box.height - box.bottom;
  chart.append(svg("line", { class: "axis", x1: box.left, x2: box.width - box.right, y1: floor, y2: floor }));
  for (const v of stepTicks(first, last)) {
    chart.append(svg("line", { class: "axis", x1: x(v), x2: x(v), y1: floor, y2: floor + 3 }));
    chart.append(svg("text", { x: x(v), y: floor + 14, "text-anchor": "middle" }, v));
  }
  chart.append(svg("text", { x: (box.left + box.width - box.right) / 2, y: box.height - 4, "text-anchor": "middle" }, "step"));

  const legend = element("ul", { class: "legend" });
  group.series.forEach(([values, label], s) => {
    let path = "";
    let pen = "M";
    values.forEach((v, i) => {
      if (v > 0) {
        path += `${pen}${x(steps[i]).toFixed(1)} ${y(v).toFixed(1)}`;
        pen = "L";
      } else {
        pen = "M";
      }
    });
    chart.append(svg("path", { class: `curve s${s}`, d: path || "M0 0" }));
    const swatch = svg("svg", { viewBox: "0 0 20 6", "aria-hidden": "true" });
    swatch.append(svg("line", { class: `s${s}`, x1: 0, x2: 20, y1: 3, y2: 3, "stroke-width": 2 }));
    legend.append(element("li", {}, swatch, label));
  });
  connectCursor(chart, curves, group, x);
  figure.append(chart, legend);
  return figure;
}

// connectCursor shows the values of a step, selected with the pointer or the arrow keys.
function connectCursor(chart, curves, group, x) {
  const cursor = svg("line", { class: "cursor", y1: box.top, y2: box.height - box.bottom, visibility: "hidden" });
  chart.append(cursor);
  const tooltip = byId("tooltip");
  let at = curves.step.length - 1;
  const show = (i) => {
    at = Math.max(0, Math.min(curves.step.length - 1, i));
    const where = x(curves.step[at]);
    cursor.setAttribute("x1", where);
    cursor.setAttribute("x2", where);
    cursor.setAttribute("visibility", "visible");
    const lines = group.series.map(([values, label]) => `${label}  ${short(values[at])}`);
    tooltip.textContent = `step ${curves.step[at]} · t = ${curves.t[at]}\n${lines.join("\n")}`;
    tooltip.hidden = false;
    const frame = chart.getBoundingClientRect();
    const left = frame.left + where / box.width * frame.width + 12;
    const width = tooltip.offsetWidth;
    tooltip.style.left = `${left + width > innerWidth - 8 ? left - width - 24 : left}px`;
    tooltip.style.top = `${frame.top + 6}px`;
  };
  const hide = () => {
    cursor.setAttribute("visibility", "hidden");
    tooltip.hidden = true;
  };
  chart.addEventListener("pointermove", (event) => {
    const frame = chart.getBoundingClientRect();
    const pointer = (event.clientX - frame.left) / frame.width * box.width;
    let nearest = 0;
    curves.step.forEach((step, i) => {
      if (Math.abs(x(step) - pointer) < Math.abs(x(curves.step[nearest]) - pointer)) nearest = i;
    });
    show(nearest);
  });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    show(at + move);
  });
}

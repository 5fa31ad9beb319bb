// cards.js: one card per item, found by search and filters. The page makes the cards of the first matches only.

const cardsAtOnce = 24;

// maxRatio is the ratio of mean square residual and variance of the noise above which a card marks its item.
const maxRatio = 1.5;

const orders = {
  psnr: (a, b) => compareNumbers(scores.psnr[a], scores.psnr[b], 1),
  gain: (a, b) => compareNumbers(gainOf(a), gainOf(b), 1),
  residual: (a, b) => compareNumbers(scores.residual[a], scores.residual[b], -1),
  ratio: (a, b) => compareNumbers(items.ratio[a], items.ratio[b], -1),
};

const gainOf = (row) => (scores.psnr[row] === null || items.baseline[row] === null ? null : scores.psnr[row] - items.baseline[row]);

// varianceOf names the mean variance of an item's noise.
const varianceOf = (row) => (cellOf(row).photons ? "noise variance" : "σ²");

function figure(title, value, unit, mark) {
  return element("div", {}, element("dt", {}, title),
    element("dd", { class: mark ?? null }, value, unit ? element("span", { class: "unit" }, ` ${unit}`) : null));
}

// scored lists the metrics of which an item has a score, the main ones or the others. The residual has a place of its own.
const scored = (row, main) => items.metrics.filter((m) => Boolean(m.main) === main && m.name !== "residual" && scores[m.name][row] !== null);

// figuresOf lists the main scores of an item.
function figuresOf(row) {
  const list = element("dl", { class: "figures" });
  const gain = gainOf(row);
  for (const m of scored(row, true)) {
    list.append(figure(m.title, decimals(scores[m.name][row], m.decimals), m.unit));
    if (m.name === "psnr" && gain !== null) {
      list.append(figure("Degraded", decimals(items.baseline[row], 2), "dB", "before"));
      list.append(figure("Gain", signed(gain, 2), "dB", gain < 0 ? "loss" : "win"));
    }
  }
  const ratio = items.ratio[row];
  if (ratio !== null) {
    const misfit = ratio > maxRatio;
    const entry = figure("Residual", decimals(ratio, 2), varianceOf(row), misfit ? "loss" : null);
    entry.title = `mean((y − A(x))²) over ${varianceOf(row)}${misfit ? `; above ${maxRatio}: the image does not explain its measurement` : ""}`;
    if (misfit) entry.lastChild.append(element("span", { class: "flag", role: "img", "aria-label": `above ${maxRatio}` }, "!"));
    list.append(entry);
  } else if (scores.residual[row] !== null) {
    list.append(figure("Residual", decimals(scores.residual[row], 4)));
  }
  return list;
}

// work lists the counts of a cost, which results of earlier versions lack.
function work(cost) {
  if (!cost) return "";
  const counts = [
    [cost.network, "network evaluations"], [cost.network_backward, "backward passes"], [cost.operator, "operator calls"],
    [cost.autoencoder, "autoencoder evaluations"], [cost.autoencoder_backward, "backward passes through the autoencoder"],
  ];
  return counts.filter(([n]) => n > 0).map(([n, name]) => `; ${n} ${name}`).join("");
}

// settingsOf lists everything that determines an item.
function settingsOf(row) {
  const c = cellOf(row);
  const how = items.hows[items.how[row]];
  const list = element("dl", { class: "settings" });
  const spaced = (text) => text.replaceAll(";", "; ");
  for (const [name, value] of [
    ["Task", c.label === c.task ? c.task : `${c.label} (${c.task})`], ["Parameters", spaced(c.params)], ["Noise σ", String(c.sigma)], ["Photons", c.photons ? String(c.photons) : ""],
    ["Size", `${how.width} × ${how.height} px${how.fit ? `, ${how.fit}` : ""}`], ["Method", c.method], ["Preset", c.preset],
    ["Settings", spaced(c.settings)], ["Prior", c.prior], ["Seed", how.seed], ["Run", String(items.run[row])],
    ...scored(row, false).map((m) => [m.title, `${decimals(scores[m.name][row], m.decimals)} ${m.unit ?? ""}`]),
    ["Residual", scores.residual[row] === null ? "" : `mean((y − A(x))²) − ${varianceOf(row)} = ${decimals(scores.residual[row], 4)}`],
    ["Cost", `${how.steps} steps in ${decimals(items.seconds[row], 2)} s${how.provider ? ` on ${how.provider}` : ""}${how.precision ? `, ${how.precision}` : ""}${how.form ? `, form ${how.form}` : ""}${work(how.cost)}`],
    ["Warnings", spaced(items.warnings[row])], ["Item", items.id[row]],
  ]) {
    if (value !== "") list.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }
  return list;
}

// detailsOf fills itself when it is opened for the first time.
function detailsOf(row) {
  const body = element("div", { class: "detail" });
  const fill = () => {
    const curves = readCurves(row);
    const charts = element("div", { class: "charts" });
    if (curves) {
      charts.append(...groupsOf(curves).map((group) => drawChart(curves, group, nameOf(row))));
      if (curves.step.at(-1) > curves.step.length) {
        charts.append(element("p", { class: "muted" }, `Drawn at ${curves.step.length} of ${curves.step.at(-1)} steps; `,
          element("a", { href: fileOf(row, "trace.json") }, "trace.json"), " has all."));
      }
    } else if (items.pictures[row] & traceBit) {
      charts.append(element("p", { class: "muted" }, "The curves are in ", element("a", { href: fileOf(row, "trace.json") }, "trace.json"),
        "; this page holds those of a selection of items."));
    } else {
      charts.append(element("p", { class: "muted" }, "No solver curves."));
    }
    body.replaceChildren(charts, settingsOf(row));
  };
  return element("details", { toggle: fill }, element("summary", {}, "Curves and settings"), body);
}

function cardOf(row) {
  const heading = element("h3", { id: `name-${row}` }, nameOf(row));
  const pictures = element("div", { class: "pictures" });
  const about = `${nameOf(row)}, ${cellOf(row).label}`;
  const shown = [
    ...kinds.map((k) => ({ kind: k.kind, title: k.title, path: pathOf(row, k.kind) })),
    ...(data.pictures[items.id[row]] ?? []).map((p) => ({ kind: "further", title: p.title, path: p.path })),
  ];
  for (const { kind, title, path } of shown) {
    const img = picture(path, `${title}: ${about}`);
    pictures.append(element("figure", {},
      path === null ? img : element("button", {
        type: "button", class: "enlarge", "data-kind": kind, "aria-label": `Enlarge and compare: ${title}, ${about}`, click: () => openViewer(row),
      }, img),
      element("figcaption", {}, title)));
  }
  const siblings = approachesOf(row).length;
  const warnings = items.warnings[row];
  if (warnings) heading.append(element("span", { class: "flag" }, warnings.replaceAll(";", ", ")));
  return element("article", { class: "item", "aria-labelledby": `name-${row}`, "data-row": row },
    element("header", {}, heading, element("p", { class: "muted" }, describe(row))),
    figuresOf(row), pictures,
    element("div", { class: "more" }, detailsOf(row),
      element("button", { type: "button", class: "compare-button", click: () => openViewer(row) },
        siblings > 1 ? `Compare ${siblings} restorations` : "Side by side")));
}

// The matching rows in the chosen order, and the number of their cards on the page.
let matches = [];
let built = 0;

function buildCards(n) {
  const next = matches.slice(built, built + n);
  byId("cards").append(...next.map(cardOf));
  built += next.length;
  const total = matches.length === count ? `${count} items` : `${matches.length} of ${count} items match`;
  byId("shown").textContent = built < matches.length ? `${total}, ${built} shown` : total;
  byId("more").hidden = built >= matches.length;
  return next;
}

const searchNames = items.names.map((name) => name.toLowerCase());

function applyFilter(form) {
  const { task, method, variant, order, q } = Object.fromEntries(new FormData(form));
  const words = q.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const wantedName = searchNames.map((name) => words.every((w) => name.includes(w)));
  const wantedCell = items.cells.map((c) =>
    (task === "" || c.task === task) && (method === "" || c.method === method) && (!variant || c.variant === variant));
  matches = [];
  for (let row = 0; row < count; row++) {
    if (wantedName[items.name[row]] && wantedCell[items.cell[row]]) matches.push(row);
  }
  const by = orders[order];
  if (by) matches.sort((a, b) => by(a, b) || a - b);
  byId("cards").replaceChildren();
  built = 0;
  if (buildCards(cardsAtOnce).length === 0) byId("cards").append(element("p", { class: "muted" }, "No item matches."));
}

// rememberState writes the filter and the open item to the address, so that a view can be shared.
function rememberState(form, open) {
  const state = new URLSearchParams([...new FormData(form)].filter(([, v]) => v !== ""));
  if (open !== null) state.set("item", open);
  history.replaceState(null, "", "#" + state);
}

function connectFilter(form) {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of address) {
    const field = form.elements.namedItem(name);
    if (field && (!field.options || [...field.options].some((o) => o.value === value))) field.value = value;
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    rememberState(form, null);
    applyFilter(form);
  });
  byId("more").addEventListener("click", () => {
    const next = buildCards(cardsAtOnce);
    byId("cards").querySelector(`[data-row="${next[0]}"] .enlarge`)?.focus();
  });
  applyFilter(form);
  const open = items.id.indexOf(address.get("item"));
  if (open >= 0) openViewer(open);
}

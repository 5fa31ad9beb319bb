"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("report-data").textContent);
  const cards = [...document.querySelectorAll(".item")];

  // number(text) reads a data attribute; an empty one is NaN.
  const number = (text) => (text === "" || text === undefined ? NaN : Number(text));

  // compareNumbers puts NaN last in both directions.
  function compareNumbers(a, b, sign) {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return sign * (a - b);
  }

  // Tables: each heading becomes a button that sorts by its column.
  function makeSortable(table) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[0].cells];
    const rows = [...body.rows];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        headings.forEach((h) => h.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const sign = up ? 1 : -1;
        body.append(...rows.toSorted((r, s) => {
          const a = r.cells[column];
          const b = s.cells[column];
          if (a.dataset.value === undefined) return sign * a.textContent.localeCompare(b.textContent);
          return compareNumbers(number(a.dataset.value), number(b.dataset.value), sign);
        }));
      });
    });
  }

  // Items: filter, order and bound. The state lives in the address, so a view can be shared.
  const orders = {
    psnr: (a, b) => compareNumbers(number(a.dataset.psnr), number(b.dataset.psnr), 1),
    gain: (a, b) => compareNumbers(number(a.dataset.gain), number(b.dataset.gain), 1),
    residual: (a, b) => compareNumbers(number(a.dataset.residual), number(b.dataset.residual), -1),
  };
  const visible = () => [...document.querySelectorAll(".item:not([hidden])")];

  function applyFilter(form) {
    const { task, method, order, show } = Object.fromEntries(new FormData(form));
    const byNumber = (a, b) => a.dataset.number - b.dataset.number;
    const by = orders[order] ?? byNumber;
    byId("cards").append(...cards.toSorted((a, b) => by(a, b) || byNumber(a, b)));
    const limit = show === "" ? Infinity : Number(show);
    let shown = 0;
    for (const card of document.querySelectorAll(".item")) {
      const match = (task === "" || card.dataset.task === task)
        && (method === "" || card.dataset.method === method);
      card.hidden = !match || shown >= limit;
      if (!card.hidden) shown++;
    }
    byId("shown").textContent = `${shown} of ${cards.length} shown`;
  }

  function connectFilter(form) {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      const field = form.elements.namedItem(name);
      if (field && [...field.options].some((o) => o.value === value)) field.value = value;
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", () => {
      const state = new URLSearchParams([...new FormData(form)].filter(([, v]) => v !== ""));
      history.replaceState(null, "", "#" + state);
      applyFilter(form);
    });
    applyFilter(form);
  }

  // Curves: one SVG with a logarithmic vertical axis for up to three curves of a group.
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
    const figure = document.createElement("div");
    figure.className = "chart";
    const heading = document.createElement("h4");
    heading.textContent = group.title;
    figure.append(heading);

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

    const legend = document.createElement("ul");
    legend.className = "legend";
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
      const entry = document.createElement("li");
      const swatch = svg("svg", { viewBox: "0 0 20 6", "aria-hidden": "true" });
      swatch.append(svg("line", { class: `s${s}`, x1: 0, x2: 20, y1: 3, y2: 3, "stroke-width": 2 }));
      entry.append(swatch, label);
      legend.append(entry);
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

  // Enlarged view: the restored image with another one over its left part.
  function connectZoom(dialog) {
    const before = byId("zoom-before");
    const after = byId("zoom-after");
    const slide = byId("slide");
    let card = null;

    const source = (kind) => card.querySelector(`img[data-picture="${kind}"]`);
    const set = (img, from) => {
      img.src = from.src;
      img.alt = from.alt;
      img.classList.toggle("coarse", from.naturalWidth < 512);
    };
    const divide = () => {
      before.style.clipPath = `inset(0 ${100 - slide.value}% 0 0)`;
      byId("divider").style.left = `${slide.value}%`;
    };
    const against = (kind) => {
      const other = source(kind);
      for (const part of [before, byId("divider"), byId("tag-before"), slide.parentElement]) part.hidden = !other;
      if (!other) return;
      set(before, other);
      byId("tag-before").textContent = kind === "truth" ? "Truth" : "Measurement";
    };
    const open = (next, kind) => {
      card = next;
      const restored = source("restored");
      byId("zoom-title").textContent = `${card.querySelector("h3").textContent}: ${card.querySelector(".what p").textContent}`;
      after.hidden = !restored;
      if (restored) {
        set(after, restored);
        byId("compare").style.aspectRatio = `${restored.naturalWidth || 1} / ${restored.naturalHeight || 1}`;
      }
      const choices = [...dialog.querySelectorAll("[name=against]")];
      choices.forEach((c) => { c.disabled = !source(c.value); });
      const choice = choices.find((c) => c.value === kind && !c.disabled) ?? choices.find((c) => !c.disabled);
      if (choice) choice.checked = true;
      against(choice ? choice.value : "");
      divide();
      if (!dialog.open) dialog.showModal();
    };
    const step = (by) => {
      const list = visible();
      const kind = dialog.querySelector("[name=against]:checked")?.value;
      open(list[(list.indexOf(card) + by + list.length) % list.length], kind);
    };

    for (const button of document.querySelectorAll(".enlarge")) {
      button.addEventListener("click", () => open(button.closest(".item"), button.dataset.kind));
    }
    slide.addEventListener("input", divide);
    dialog.addEventListener("change", (event) => {
      if (event.target.name === "against") against(event.target.value);
    });
    const drag = (event) => {
      if (event.type === "pointermove" && event.buttons === 0) return;
      const frame = byId("compare").getBoundingClientRect();
      slide.value = (event.clientX - frame.left) / frame.width * 100;
      divide();
    };
    byId("compare").addEventListener("pointerdown", drag);
    byId("compare").addEventListener("pointermove", drag);
    byId("zoom-close").addEventListener("click", () => dialog.close());
    byId("zoom-previous").addEventListener("click", () => step(-1));
    byId("zoom-next").addEventListener("click", () => step(1));
  }

  document.querySelectorAll("table.sortable").forEach(makeSortable);
  if (byId("toolbar")) connectFilter(byId("toolbar"));
  for (const card of cards) {
    const curves = data.curves[card.dataset.number];
    if (!curves) continue;
    const name = card.querySelector("h3").textContent;
    card.querySelector(".charts").append(...groupsOf(curves).map((group) => drawChart(curves, group, name)));
  }
  connectZoom(byId("zoom"));

  // Report the state of the images to scripts.
  addEventListener("load", () => {
    const images = [...document.querySelectorAll("img[data-picture]")];
    const loaded = images.filter((img) => img.complete && img.naturalWidth > 0);
    for (const img of loaded) img.classList.toggle("coarse", img.naturalWidth < img.clientWidth);
    const state = document.documentElement.dataset;
    state.imagesLoaded = loaded.length;
    state.imagesBroken = images.length - loaded.length;
    state.ready = "1";
  });
})();

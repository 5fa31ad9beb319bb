// page.js: what all parts of the page share. Each text reaches the document as text, never as markup.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("report-data").textContent);
const items = data.items;
const scores = items.scores; // by the names of items.metrics
const count = items.id.length;

// element(tag, attributes, children) makes an element; null and false attributes are left out, functions are listeners.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== false));
  return node;
}

// compareNumbers puts null last in both directions.
function compareNumbers(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (a - b);
}

const decimals = (v, digits) => v.toFixed(digits).replace("-", "−");
const signed = (v, digits) => (v < 0 ? "" : "+") + decimals(v, digits);

// The kinds of pictures in the order of their bits in items.pictures.
const kinds = [
  { kind: "truth", title: "Truth", file: "truth.png", bit: 1 },
  { kind: "measurement", title: "Measurement", file: "measurement.png", bit: 2 },
  { kind: "restored", title: "Restored", file: "restored.png", bit: 4 },
];
const traceBit = 8;

const fileOf = (row, file) => `items/${encodeURIComponent(items.id[row])}/${file}`;
const nameOf = (row) => items.names[items.name[row]];
const cellOf = (row) => items.cells[items.cell[row]];
const pathOf = (row, kind) => {
  const { bit, file } = kinds.find((k) => k.kind === kind);
  return items.pictures[row] & bit ? fileOf(row, file) : null;
};

// picture returns an image that the page loads when it comes near the window, or a remark in its place. The root element
// counts both for scripts.
const loadedPictures = { loaded: 0, broken: 0 };
function picture(path, alt) {
  if (path === null) return element("span", { class: "none" }, "none");
  const img = element("img", { alt, loading: "lazy", decoding: "async" });
  const tally = (key) => {
    loadedPictures[key]++;
    document.documentElement.dataset[key === "loaded" ? "imagesLoaded" : "imagesBroken"] = loadedPictures[key];
  };
  img.addEventListener("load", () => {
    img.classList.toggle("coarse", img.naturalWidth < 512);
    tally("loaded");
  }, { once: true });
  img.addEventListener("error", () => {
    img.replaceWith(element("span", { class: "none", title: path }, "file not found"));
    tally("broken");
  }, { once: true });
  img.src = path;
  return img;
}

// describe lists task, variant and method of an item.
function describe(row) {
  const c = cellOf(row);
  return [c.label, c.variant, c.method, `run ${items.run[row]}`].filter((t) => t !== "").join(" · ");
}

// tables.js: each heading of a sortable table becomes a button that sorts by its column.

function makeSortable(table) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const rows = [...body.rows];
  const number = (text) => (text === "" ? null : Number(text));
  headings.forEach((heading, column) => {
    const button = element("button", { type: "button" }, ...heading.childNodes);
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

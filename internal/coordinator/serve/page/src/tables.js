// tables.js: each heading of a sortable table becomes a button that sorts by its column.

// compareNumbers puts null last in both directions.
export function compareNumbers(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (a - b);
}

const number = (text) => (text === "" ? null : Number(text));

export function makeSortable(table) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.querySelectorAll("th")];
  const rows = [...body.rows];
  headings.forEach((heading) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      headings.forEach((h) => h.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      body.append(...rows.toSorted((r, s) => {
        const a = r.cells[heading.cellIndex];
        const b = s.cells[heading.cellIndex];
        if (a.dataset.value === undefined) return sign * a.textContent.localeCompare(b.textContent);
        return compareNumbers(number(a.dataset.value), number(b.dataset.value), sign);
      }));
    });
  });
}

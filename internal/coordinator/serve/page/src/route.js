// route.js: the screen and its filters are in the fragment of the address, #/campaigns/ID?state=dead, so that each view is a link.

import { useEffect, useState } from "preact/hooks";

export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter((p) => p !== "").map(decoded), query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

// decoded returns a segment of the address; one that is no encoded text, as somebody typed it.
function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function link(path, query = {}) {
  const set = Object.entries(query).filter(([, v]) => v !== undefined && v !== "");
  return `#/${path.map(encodeURIComponent).join("/")}${set.length > 0 ? `?${new URLSearchParams(set)}` : ""}`;
}

export const go = (path, query) => { location.hash = link(path, query); };

// amend changes filters of the shown screen without an entry in the history.
export function amend(changes) {
  const { path, query } = parse(location.hash);
  history.replaceState(null, "", link(path, { ...query, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [route, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const read = () => set(parse(location.hash));
    addEventListener("hashchange", read);
    read(); // the address may have changed since the first drawing
    return () => removeEventListener("hashchange", read);
  }, []);
  return route;
}

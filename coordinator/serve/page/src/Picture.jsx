// Picture.jsx: a picture of an item, or a remark in its place.

import { useState } from "preact/hooks";
import { address, name } from "./api.js";

export const files = { measurement: "measurement.png", restored: "restored.png", truth: "truth.png" };
export const titles = { measurement: "Measurement", restored: "Restored", truth: "Truth" };

export const pictureOf = (id, item, kind, width) => address(`campaigns/${name(id)}/items/${name(item)}/files/${files[kind]}`, { width });

export function Picture({ id, item, kind, width }) {
  const src = pictureOf(id, item.id, kind, width);
  const [broken, setBroken] = useState(null);
  if (item.state !== "done" || broken === src) return <span class="none" aria-hidden="true">{titles[kind]}</span>;
  return <img src={src} alt="" title={titles[kind]} loading="lazy" decoding="async" onError={() => setBroken(src)} />;
}

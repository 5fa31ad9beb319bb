// Picture.jsx: a picture that is loaded when it comes near the window, or a remark in its place.

import { useState } from "preact/hooks";
import { address, name } from "./api.js";

export const titles = { truth: "Truth", measurement: "Measurement", restored: "Restored" };

export const pictureOf = (id, item, kind, width) => address(`campaigns/${name(id)}/items/${name(item)}/files/${kind}.png`, { width });

// tally counts pictures for scripts, in data of the root element.
function tally(key) {
  const counts = document.documentElement.dataset;
  counts[key] = Number(counts[key] ?? 0) + 1;
}

// Small pictures keep their pixels when they are enlarged.
function loaded({ target }) {
  target.classList.toggle("coarse", target.naturalWidth < 512);
  tally("imagesLoaded");
}

export function Picture({ src, remark = "file not found", ...more }) {
  const [broken, setBroken] = useState(null);
  if (!src || broken === src) return <span class="none" title={src} aria-hidden={more.alt === ""}>{remark}</span>;
  const lost = () => {
    setBroken(src);
    tally("imagesBroken");
  };
  return <img loading="lazy" decoding="async" {...more} src={src} onLoad={loaded} onError={lost} />;
}

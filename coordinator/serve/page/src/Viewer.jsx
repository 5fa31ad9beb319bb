// Viewer.jsx: truth, measurement and restoration beside each other with one zoom, and a second picture behind a divider.

import { useEffect, useRef, useState } from "preact/hooks";
import { connectZoom } from "../../../report/page/script/zoom.js";
import { files, pictureOf, titles } from "./Picture.jsx";

const layers = [["picture", "Picture"], ["measurement", "Divide: measurement"], ["truth", "Divide: truth"]];

function Panel({ title, src, over, coarse, missing }) {
  return (
    <figure class={over ? "panel restored" : "panel"}>
      <div class="frame"><div class="inner">
        <img src={src} alt={title} draggable={false} onError={missing} onLoad={(e) => coarse(e.target)} />
        {over && <img class="over" src={over} alt="" onLoad={(e) => coarse(e.target)} />}
      </div></div>
      <figcaption><strong>{title}</strong></figcaption>
    </figure>
  );
}

// Small pictures keep their pixels when they are enlarged.
const coarse = (img) => img.classList.toggle("coarse", img.naturalWidth < 512);

export function Viewer({ id, item }) {
  const stage = useRef(null);
  const zoom = useRef(null);
  const layer = useRef("picture");
  const [chosen, setChosen] = useState("picture");
  const [level, setLevel] = useState("100 %");
  const [cut, setCut] = useState(50);
  const [missing, setMissing] = useState([]);
  layer.current = chosen;
  useEffect(() => {
    zoom.current = connectZoom(stage.current, { show: setLevel, dividing: () => layer.current !== "picture", divide: (share) => setCut(Math.round(share * 100)) });
    zoom.current.reset();
  }, []);
  useEffect(() => { stage.current.style.setProperty("--cut", `${cut}%`); }, [cut]);
  const keys = (event) => {
    if (!event.target.matches("input, select") && !event.ctrlKey && !event.metaKey && !event.altKey && zoom.current.key(event.key)) event.preventDefault();
  };
  const has = (kind) => !missing.includes(kind);
  const other = chosen === "picture" ? null : pictureOf(id, item.id, chosen);
  return (
    <>
      <div class="controls">
        <fieldset><legend>Show</legend>
          {layers.map(([value, text]) => (
            <label key={value}><input type="radio" name="layer" value={value} checked={chosen === value} disabled={value !== "picture" && !has(value)} onChange={() => setChosen(value)} /> {text}</label>
          ))}
        </fieldset>
        <label class="slide" hidden={chosen === "picture"}>Divider <input type="range" min="0" max="100" value={cut} onInput={(e) => setCut(Number(e.target.value))} /></label>
        <span class="zoom">
          <button type="button" onClick={() => zoom.current.at(1 / 1.5)} aria-label="Zoom out">−</button>
          <output>{level}</output>
          <button type="button" onClick={() => zoom.current.at(1.5)} aria-label="Zoom in">+</button>
          <button type="button" onClick={() => zoom.current.reset()}>Fit</button>
        </span>
      </div>
      <div id="stage" ref={stage} data-layer={chosen === "picture" ? "picture" : `divide-${chosen}`} tabIndex={0} role="group" aria-label="Pictures; + and − zoom, arrows pan, 0 fits" onKeyDown={keys}>
        {Object.keys(files).filter(has).map((kind) => (
          <Panel key={kind} title={titles[kind]} src={pictureOf(id, item.id, kind)} over={kind === "restored" ? other : null} coarse={coarse}
            missing={() => setMissing((m) => [...m, kind])} />
        ))}
      </div>
    </>
  );
}

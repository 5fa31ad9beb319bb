// Viewer.jsx: pictures beside each other with one zoom; over a restoration its error map, or another picture on the left of a divider.

import { useEffect, useRef, useState } from "preact/hooks";
import { typing } from "./Dialog.jsx";
import { Picture } from "./Picture.jsx";
import { connectZoom } from "./zoom.js";

// layers have a name, a text, and the picture that they need.
const layers = [["picture", "pictures"], ["error", "error map", "truth"], ["divide-truth", "truth on the left", "truth"], ["divide-measurement", "measurement on the left", "measurement"]];
const ends = [0.05, 0.1, 0.2, 0.5, 1];

// ErrorFilter colours the mean over the channels, as a share of the end of the scale.
function ErrorFilter({ end }) {
  const line = `${`${1 / end / 3} `.repeat(3)}0 0 `;
  return (
    <svg class="defs" width="0" height="0" aria-hidden="true">
      <filter id="error-filter" color-interpolation-filters="sRGB" x="0" y="0" width="1" height="1">
        <feColorMatrix type="matrix" values={`${line.repeat(3)}0 0 0 1 0`} />
        <feComponentTransfer>
          <feFuncR type="table" tableValues="0 0.114 0.318 0.510 0.714 0.902 0.984 0.996 0.988" />
          <feFuncG type="table" tableValues="0 0.067 0.071 0.149 0.212 0.318 0.533 0.761 0.992" />
          <feFuncB type="table" tableValues="0.016 0.278 0.486 0.506 0.475 0.392 0.380 0.529 0.749" />
        </feComponentTransfer>
      </filter>
    </svg>
  );
}

function Panel({ title, src, text, current, over }) {
  return (
    <figure class={`panel${over === undefined ? "" : " restored"}${current ? " current" : ""}`}>
      <div class="frame"><div class="inner">
        <Picture src={src} alt={title} />
        {src && over && <Picture src={over} alt="" class="over" />}
      </div></div>
      <figcaption><strong>{title}</strong>{text && <span>{text}</span>}</figcaption>
    </figure>
  );
}

// Viewer shows the panels of a subject, a measurement. Those that are restored can be compared with its pictures, { truth, measurement }.
export function Viewer({ subject, panels, pictures }) {
  const stage = useRef(null);
  const zoom = useRef(null);
  const [chosen, setChosen] = useState("picture");
  const [level, setLevel] = useState("100 %");
  const [cut, setCut] = useState(50);
  const [end, setEnd] = useState(0.2);
  const [layer, , needed] = layers.find(([name, , kind]) => name === chosen && (!kind || pictures[kind])) ?? layers[0];
  const divides = useRef(false);
  divides.current = layer.startsWith("divide");
  useEffect(() => {
    zoom.current = connectZoom(stage.current, { show: setLevel, dividing: () => divides.current, divide: (share) => setCut(Math.round(share * 100)) });
    const dialog = stage.current.closest("dialog");
    const keys = (event) => { if (!typing(event) && !event.defaultPrevented && zoom.current.key(event.key)) event.preventDefault(); };
    dialog.addEventListener("keydown", keys);
    return () => dialog.removeEventListener("keydown", keys);
  }, []);
  useEffect(() => zoom.current.reset(), [subject]);
  return (
    <>
      <ErrorFilter end={end} />
      <div class="controls">
        <fieldset><legend>Show</legend>
          {layers.map(([name, text, kind]) => (
            <label key={name}><input type="radio" name="layer" value={name} checked={layer === name} disabled={kind && !pictures[kind]} onChange={() => setChosen(name)} /> {text}</label>
          ))}
        </fieldset>
        <label class="slide" hidden={!divides.current}>Divider <input type="range" min="0" max="100" value={cut} onInput={(e) => setCut(Number(e.target.value))} /></label>
        <div class="zoom" role="group" aria-label="Zoom">
          <button type="button" onClick={() => zoom.current.at(1 / 1.5)} aria-label="Zoom out">−</button>
          <output aria-live="off">{level}</output>
          <button type="button" onClick={() => zoom.current.at(1.5)} aria-label="Zoom in">+</button>
          <button type="button" onClick={() => zoom.current.reset()}>Fit</button>
        </div>
      </div>
      {layer === "error" && (
        <div class="error-scale">
          <span>|restored − truth|, mean over the channels:</span>
          <span>0</span><span class="ramp" role="img" aria-label="Colours from black at 0 over purple and orange to pale yellow" /><span id="error-end">{end}</span>
          <label>Upper end <select value={end} onChange={(e) => setEnd(Number(e.target.value))}>{ends.map((v) => <option key={v}>{v}</option>)}</select></label>
          <span class="muted">of the range [0, 1]; larger errors have the last colour</span>
        </div>
      )}
      <div id="stage" ref={stage} data-layer={layer} style={{ "--cut": `${cut}%` }} tabIndex={0} role="group"
        aria-label="Pictures with one zoom. Plus, minus and 0 zoom, arrow keys move the pictures, n and p open the next and the previous.">
        {panels.map(({ restored, ...panel }, i) => <Panel key={i} {...panel} over={restored ? pictures[needed] ?? null : undefined} />)}
      </div>
      <p class="muted hint">Wheel, two fingers or + and − zoom all pictures; a drag or the arrow keys move them; 0 or a double click fits. n and p open the next and the previous.</p>
    </>
  );
}

// zoom.js: one zoom for all pictures of a stage.

const maxScale = 32;

// connectZoom: the wheel and two fingers zoom, a drag pans; where dividing() holds, a drag over pictures that are not enlarged moves
// the divider to a share of the frame. show receives the zoom as text. The result has the same actions for buttons and keys.
export function connectZoom(stage, { show, dividing, divide }) {
  // x and y are the offsets of the enlarged picture in shares of its frame.
  const view = { scale: 1, x: 0, y: 0 };
  const place = () => {
    view.x = Math.min(0, Math.max(1 - view.scale, view.x));
    view.y = Math.min(0, Math.max(1 - view.scale, view.y));
    stage.style.setProperty("--scale", view.scale);
    stage.style.setProperty("--x", `${view.x * 100}%`);
    stage.style.setProperty("--y", `${view.y * 100}%`);
    stage.classList.toggle("zoomed", view.scale > 1);
    show(`${Math.round(view.scale * 100)} %`);
  };
  // at enlarges by a factor around a point, given in shares of a frame.
  const at = (factor, px = 0.5, py = 0.5) => {
    const scale = Math.min(maxScale, Math.max(1, view.scale * factor));
    view.x = px - (px - view.x) * scale / view.scale;
    view.y = py - (py - view.y) * scale / view.scale;
    view.scale = scale;
    place();
  };
  const pan = (dx, dy) => {
    view.x += dx;
    view.y += dy;
    place();
  };
  const reset = () => {
    Object.assign(view, { scale: 1, x: 0, y: 0 });
    place();
  };
  const step = 0.1;
  const keys = {
    "+": () => at(1.25), "=": () => at(1.25), "-": () => at(0.8), 0: reset,
    ArrowLeft: () => pan(step, 0), ArrowRight: () => pan(-step, 0), ArrowUp: () => pan(0, step), ArrowDown: () => pan(0, -step),
  };
  // key does what a key stands for, and returns false if that is nothing.
  const key = (name) => {
    if (!keys[name] || (name.startsWith("Arrow") && view.scale === 1)) return false;
    keys[name]();
    return true;
  };

  const fingers = new Map();
  let spread = 0;
  const distance = () => {
    const [a, b] = [...fingers.values()];
    return fingers.size === 2 ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 0;
  };
  const frameOf = (event) => event.target.closest(".frame");
  const pointIn = (frame, event) => {
    const box = frame.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  stage.addEventListener("wheel", (event) => {
    const frame = frameOf(event);
    if (!frame) return;
    event.preventDefault();
    at(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 200), ...pointIn(frame, event));
  }, { passive: false });
  stage.addEventListener("pointerdown", (event) => {
    if (!frameOf(event)) return;
    fingers.set(event.pointerId, event);
    spread = distance();
  });
  const lift = (event) => {
    fingers.delete(event.pointerId);
    spread = 0;
  };
  stage.addEventListener("pointerup", lift);
  stage.addEventListener("pointercancel", lift);
  stage.addEventListener("pointerleave", lift);
  stage.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    const frame = frameOf(event);
    if (!before || !frame) return;
    fingers.set(event.pointerId, event);
    const box = frame.getBoundingClientRect();
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()];
      const now = distance();
      const middle = { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
      if (spread > 0) at(now / spread, ...pointIn(frame, middle));
      spread = now;
    } else if (view.scale === 1 && dividing()) {
      divide(Math.min(1, Math.max(0, pointIn(frame, event)[0])));
    } else {
      pan((event.clientX - before.clientX) / box.width, (event.clientY - before.clientY) / box.height);
    }
  });
  stage.addEventListener("dblclick", reset);
  return { at, pan, reset, key };
}

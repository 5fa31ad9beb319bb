// events.js: one stream of server-sent events for the whole page. The browser resumes it with the id of the last event.

import { useEffect, useRef, useState } from "preact/hooks";
import { address } from "./api.js";

const listeners = new Set();
const watchers = new Set();
let source = null;
let state = { up: true, since: 0, lost: 0 };

function tell(next) {
  state = { ...state, ...next };
  for (const w of watchers) w(state);
}

function open() {
  source = new EventSource(address("events"));
  source.onopen = () => {
    if (!state.up) {
      tell({ up: true, lost: state.lost + 1, since: Date.now() });
      for (const l of listeners) l({ type: "again" });
    }
  };
  source.onerror = () => {
    if (state.up) tell({ up: false, since: Date.now() });
    if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
  };
  for (const type of ["campaign", "workers", "cluster"]) {
    source.addEventListener(type, (event) => {
      const data = JSON.parse(event.data);
      for (const l of listeners) l({ type, data });
    });
  }
}

// connect opens the stream once.
export function connect() {
  if (!source) open();
}

// useEvents calls react with each event; { type: "again" } follows a lost connection.
export function useEvents(react) {
  const latest = useRef(react);
  latest.current = react;
  useEffect(() => {
    const l = (event) => latest.current(event);
    listeners.add(l);
    return () => listeners.delete(l);
  }, []);
}

// useConnection returns whether the stream is up, how often it was lost, and the time of the last change.
export function useConnection() {
  const [now, set] = useState(state);
  useEffect(() => {
    watchers.add(set);
    return () => watchers.delete(set);
  }, []);
  return now;
}

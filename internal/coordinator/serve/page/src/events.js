// events.js: one stream of server-sent events for the whole page. The browser resumes it with the id of the last event.

import { useEffect, useRef, useState } from "preact/hooks";
import { address } from "./api.js";

const listeners = new Set();
const watchers = new Set();
// A stream also ends by its age; the browser then opens the next one. Only a longer gap is worth a message.
const patience = 4000;
let source = null;
let broken = false;
let doubt = 0;
let state = { up: true, since: 0, lost: 0 };

function tell(next) {
  state = { ...state, ...next };
  for (const w of watchers) w(state);
}

function open() {
  source = new EventSource(address("events"));
  source.onopen = () => {
    clearTimeout(doubt);
    if (broken) for (const l of listeners) l({ kind: "again" });
    broken = false;
    if (!state.up) tell({ up: true, lost: state.lost + 1, since: Date.now() });
  };
  source.onerror = () => {
    if (!broken) doubt = setTimeout(() => tell({ up: false, since: Date.now() }), patience);
    broken = true;
    if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
  };
  for (const kind of ["campaign", "status", "worker", "leader"]) {
    source.addEventListener(kind, (event) => {
      const change = JSON.parse(event.data);
      for (const l of listeners) l(change);
    });
  }
}

// connect opens the stream once.
export function connect() {
  if (!source) open();
}

// useEvents calls react with each event, { kind, key, data }; kind "again" follows a lost connection.
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

// ofCampaign accepts the events of a campaign, or of all; ofFleet those of coordinators and workers.
export const ofCampaign = (id) => (event) => ["campaign", "status"].includes(event.kind) && (id === undefined || event.key === id);
export const ofFleet = (event) => ["worker", "leader"].includes(event.kind);

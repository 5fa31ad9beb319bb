// resource.js: values of the API in components.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.js";
import { useEvents } from "./events.js";

// useResource reads a path and reads it again on each event that concerns() accepts, at most once a second. path null reads nothing.
// While a value is read again, the last one stays.
export function useResource(path, query, concerns = () => false) {
  const [state, set] = useState({});
  const asked = JSON.stringify([path, query]);
  const timer = useRef(null);
  const read = useCallback(async (signal) => {
    if (path === null) return;
    try {
      set({ value: await get(path, query, signal), asked });
    } catch (error) {
      if (error.name !== "AbortError") set((last) => ({ value: last.asked === asked ? last.value : undefined, asked, error }));
    }
  }, [asked]);
  useEffect(() => {
    const aborted = new AbortController();
    read(aborted.signal);
    return () => {
      aborted.abort();
      clearTimeout(timer.current);
      timer.current = null;
    };
  }, [read]);
  useEvents((event) => {
    if (path === null || (event.kind !== "again" && !concerns(event)) || timer.current !== null) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      read();
    }, 1000);
  });
  return { ...(state.asked === asked ? state : {}), reload: read };
}

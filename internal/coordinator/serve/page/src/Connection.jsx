// Connection.jsx: says when the stream of events is lost, and that a coordinator answers again.

import { useEffect, useRef, useState } from "preact/hooks";
import { ofFleet, useConnection } from "./events.js";
import { useResource } from "./resource.js";

export function Connection({ cluster: isCluster }) {
  const connection = useConnection();
  const cluster = useResource(isCluster ? "cluster" : null, undefined, ofFleet);
  const before = useRef(null);
  const [moved, setMoved] = useState(null);
  const answering = cluster.value?.answered;
  useEffect(() => {
    if (connection.up && answering) {
      if (before.current && before.current !== answering) setMoved(answering);
      before.current = answering;
    }
  }, [connection.up, answering]);
  useEffect(() => {
    if (!connection.up || connection.lost === 0) return undefined;
    const timer = setTimeout(() => setMoved(null), 15_000);
    return () => clearTimeout(timer);
  }, [connection, moved]);
  let text = null;
  if (!connection.up) text = <>The {isCluster ? "coordinator" : "program"} does not answer. {isCluster ? "The campaigns go on. " : ""}This page tries again.</>;
  else if (moved) text = <>Connected again: coordinator {moved} answers now.</>;
  else if (connection.lost > 0 && Date.now() - connection.since < 15_000) text = <>Connected again.</>;
  return <div role="status" class={text ? `strip ${connection.up ? "again" : "lost"}` : "strip"} hidden={!text}><div class="page">{text}</div></div>;
}

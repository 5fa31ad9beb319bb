// Connection.jsx: says when the stream of events is lost, which coordinators remain, and that another one answers.

import { useEffect, useRef, useState } from "preact/hooks";
import { ofFleet, useConnection } from "./events.js";
import { useResource } from "./resource.js";

export function Connection() {
  const connection = useConnection();
  const cluster = useResource("cluster", undefined, ofFleet);
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
  const others = (cluster.value?.coordinators ?? []).filter((c) => c.url && !location.href.startsWith(c.url));
  let text = null;
  if (!connection.up) {
    text = (
      <>
        The coordinator does not answer. The campaigns go on; this page tries again.
        {others.length > 0 && <> Others: {others.map((c) => <a key={c.name} href={c.url + location.hash}>{c.name}</a>)}</>}
      </>
    );
  } else if (moved) text = <>Connected again: coordinator {moved} answers now.</>;
  else if (connection.lost > 0 && Date.now() - connection.since < 15_000) text = <>Connected again.</>;
  return <div role="status" class={text ? `strip ${connection.up ? "again" : "lost"}` : "strip"} hidden={!text}><div class="page">{text}</div></div>;
}

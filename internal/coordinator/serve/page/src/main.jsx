// main.jsx: the frame of the page, and the screen that the address names.

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Campaign } from "./Campaign.jsx";
import { Campaigns } from "./Campaigns.jsx";
import { Compare } from "./Compare.jsx";
import { Connection } from "./Connection.jsx";
import { connect } from "./events.js";
import { Fleet } from "./Fleet.jsx";
import { Failure, Loading, Message } from "./Message.jsx";
import { useResource } from "./resource.js";
import { link, useRoute } from "./route.js";
import { admit, SignIn, SignOut } from "./SignIn.jsx";
import { Submit } from "./Submit.jsx";

// The roles that may change campaigns.
const writers = ["submitter", "admin"];

function Screen({ path, query, may }) {
  const [place, id] = path;
  switch (place ?? "campaigns") {
    case "campaigns": return id ? <Campaign key={id} id={id} query={query} may={may} /> : <Campaigns query={query} may={may} />;
    case "fleet": return <Fleet />;
    case "compare": return <Compare query={query} />;
    case "submit": return <Submit />;
  }
  return <Message title="No such page">Open <a href={link(["campaigns"])}>the campaigns</a>.</Message>;
}

function Tab({ to, at, children }) {
  return <a href={link([to])} aria-current={at === to ? "page" : null}>{children}</a>;
}

function App() {
  const { path, query } = useRoute();
  const me = useResource("me");
  const main = useRef(null);
  const at = path[0] ?? "campaigns";
  const title = [path[1], at === "campaigns" && path[1] ? null : at, "ddiff"].filter(Boolean).join(" · ");
  const screen = useRef(title);
  useEffect(() => {
    document.title = title;
    if (screen.current !== title) main.current.focus(); // a screen reader reads the new screen, and Tab goes on in it
    screen.current = title;
  }, [title]);
  useEffect(() => { if (me.value) connect(); }, [me.value]);
  let body = <Screen path={path} query={query} may={me.value?.backend === "cluster" && writers.includes(me.value.role)} />;
  if ([401, 403].includes(me.error?.status)) body = <SignIn refused={me.error.status === 403 && me.error.message} done={me.reload} />;
  else if (me.error && !me.value) body = <Failure error={me.error} retry={me.reload} />;
  else if (!me.value) body = <Loading />;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current.focus(); }}>Skip to the content</a>
      <header class="bar">
        <div class="page">
          <a class="brand" href={link(["campaigns"])}><img src="icon.svg" alt="" width="22" height="22" />ddiff</a>
          <nav aria-label="Screens">
            <Tab to="campaigns" at={at}>Campaigns</Tab>
            <Tab to="compare" at={at}>Compare</Tab>
            {me.value?.backend === "cluster" && <Tab to="fleet" at={at}>Fleet</Tab>}
          </nav>
          <SignOut me={me.value} />
        </div>
      </header>
      {me.value && <Connection cluster={me.value.backend === "cluster"} />}
      <main id="main" class="page" tabIndex={-1} ref={main}>{body}</main>
    </>
  );
}

await admit();
render(<App />, document.getElementById("app"));

// SignIn.jsx: a token becomes a session. The page never stores the token.

import { useState } from "preact/hooks";
import { address, call, get, post } from "./api.js";
import { useResource } from "./resource.js";

// A token in the address, of ddiff or of the identity provider that this tab has asked, becomes a session. Of others it could be that of a stranger.
const asked = "signing in";

export async function admit() {
  const given = location.hash.match(/^#token=(.+)$/);
  if (!given) return;
  history.replaceState(null, "", location.pathname);
  const expected = sessionStorage.getItem(asked);
  sessionStorage.removeItem(asked);
  try {
    if (expected || (await get("session")).open) await post("session", { body: { token: given[1] } });
  } catch {} // the page asks for a token
}
addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) location.reload(); });

export function SignIn({ refused, done }) {
  const how = useResource("session");
  const [error, setError] = useState(null);
  const send = async (event) => {
    event.preventDefault();
    try {
      await post("session", { body: { token: new FormData(event.target).get("token").trim() } });
      done();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <form class="message signin" onSubmit={send}>
      <h1>Sign in</h1>
      {refused && <p role="alert" class="bad">{refused}</p>}
      {how.value?.login && <p><a class="button primary" href={address("session/login")} onClick={() => sessionStorage.setItem(asked, "1")}>Sign in with your identity provider</a></p>}
      <p class="muted">An administrator makes a token with <code>ddiff token create</code>.</p>
      <label>Token <input name="token" type="password" autocomplete="current-password" required autofocus /></label>
      <button class="primary">Sign in</button>
      {error && <p role="alert" class="bad">{error.status === 401 ? "This token is unknown or revoked." : error.message}</p>}
    </form>
  );
}

export function SignOut({ me }) {
  if (!me || me.open) return null;
  const leave = async () => {
    await call("DELETE", "session");
    location.reload(); // so that nothing of the session stays, such as the stream of events
  };
  return <span class="who muted">{me.owner} ({me.role}) <button type="button" onClick={leave}>Sign out</button></span>;
}

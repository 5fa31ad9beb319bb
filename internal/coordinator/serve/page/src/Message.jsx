// Message.jsx: what a screen shows in place of content.

export function Message({ title, children }) {
  return (
    <div class="message">
      <h2>{title}</h2>
      <p class="muted">{children}</p>
    </div>
  );
}

export const Loading = () => <p class="message muted" role="status">Loading…</p>;

const remedies = {
  0: "Check that a coordinator runs, then try again.",
  401: "Sign in again.",
  403: "Your token has no right to do this; ask an administrator for another role.",
  404: "It may have been deleted, or it is on another cluster.",
  429: "Wait a moment.",
};

export function Failure({ error, retry }) {
  return (
    <div class="message" role="alert">
      <h2>{error.message}</h2>
      <p class="muted">{remedies[error.status] ?? ""}</p>
      {retry && <button type="button" onClick={() => retry()}>Try again</button>}
    </div>
  );
}

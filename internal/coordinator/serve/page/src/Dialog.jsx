// Dialog.jsx: one item or measurement over the page. n and p open the next and the previous one.

import { useEffect, useRef } from "preact/hooks";

export const typing = (event) => event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey;

export function Dialog({ title, about, actions, previous, next, close, children }) {
  const dialog = useRef(null);
  useEffect(() => { if (!dialog.current.open) dialog.current.showModal(); }, []);
  const keys = (event) => { if (!typing(event)) ({ n: next, p: previous })[event.key]?.(); };
  return (
    <dialog ref={dialog} class="viewer" aria-labelledby="viewer-title" onKeyDown={keys} onClose={close}>
      <header>
        <div>
          <h2 id="viewer-title">{title}</h2>
          <p class="muted">{about}</p>
        </div>
        <div class="actions">
          {actions}
          <button type="button" onClick={previous} disabled={!previous}>Previous</button>
          <button type="button" onClick={next} disabled={!next}>Next</button>
          <button type="button" onClick={() => dialog.current.close()}>Close</button>
        </div>
      </header>
      {children}
    </dialog>
  );
}

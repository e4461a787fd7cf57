// The page: reads the snapshot that came with it and draws.

import { render } from 'preact'
import { SNAPSHOT_ELEMENT, type Snapshot } from '../protocol.ts'

// The token has done its work: it is in the cookie now, and need not be in the history.
if (location.search !== '') history.replaceState(null, '', location.pathname)

const snapshot = JSON.parse(document.getElementById(SNAPSHOT_ELEMENT)!.textContent) as Snapshot

render(
  <main>
    <h1>{snapshot.name}</h1>
    <ul>
      {snapshot.services.map(({ namespace, name }) => (
        <li key={`${namespace}/${name}`}>{`${namespace}/${name}`}</li>
      ))}
    </ul>
  </main>,
  document.body,
)

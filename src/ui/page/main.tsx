// The page: reads the snapshot that came with it, draws, and hears what changes.

import { render } from 'preact'
import { SNAPSHOT_ELEMENT, type Snapshot } from '../protocol.ts'
import { App } from './app.tsx'
import { watchEvents } from './connect.ts'
import { Store, StoreContext } from './store.ts'
import { applyTheme, readTheme } from './theme.ts'

// The token has done its work: it is in the cookie now, and need not be in the history.
if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash)
applyTheme(readTheme())

const snapshot = JSON.parse(document.getElementById(SNAPSHOT_ELEMENT)!.textContent) as Snapshot
const store = new Store(snapshot)
render(
  <StoreContext.Provider value={store}>
    <App />
  </StoreContext.Provider>,
  document.getElementById('app') ?? document.body,
)
watchEvents(store)

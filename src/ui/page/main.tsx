// The page: reads the snapshot that came with it, draws, and hears what changes.

import { render } from 'preact'
import { SNAPSHOT_ELEMENT, type Snapshot } from '../protocol.ts'
import { App } from './app.tsx'
import { watchEvents } from './connect.ts'
import { parseRoute } from './route.ts'
import { Store, StoreContext } from './store.ts'
import { applyTheme, readTheme } from './theme.ts'

// The token has done its work: it is in the cookie now, and need not be in the history.
if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash)
applyTheme(readTheme())

const snapshot = JSON.parse(document.getElementById(SNAPSHOT_ELEMENT)!.textContent) as Snapshot
const store = new Store(snapshot)
const root = document.getElementById('app') ?? document.body
/**
 * From the root for each view: an element that a parent was given keeps what its component drew first, with the nodes of the document,
 * for as long as the parent has it. Were the way a state of the page, the first view would stay in memory behind all others.
 */
function draw(): void {
  render(
    <StoreContext.Provider value={store}>
      <App route={parseRoute(location.hash)} />
    </StoreContext.Provider>,
    root,
  )
}
draw()
addEventListener('hashchange', draw)
watchEvents(store)

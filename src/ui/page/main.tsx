// The page: draws the snapshot that it contains, and subscribes to updates.

import { render } from 'preact'
import { SNAPSHOT_ELEMENT, type Snapshot } from '../protocol.ts'
import { App } from './app.tsx'
import { watchEvents } from './connect.ts'
import { parseRoute } from './route.ts'
import { Store, StoreContext } from './store.ts'
import { applyTheme, readTheme } from './theme.ts'

// The cookie has the token now: it need not stay in the browser's history.
if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash)
applyTheme(readTheme())

const snapshot = JSON.parse(document.getElementById(SNAPSHOT_ELEMENT)!.textContent) as Snapshot
const store = new Store(snapshot)
const root = document.getElementById('app') ?? document.body
/**
 * Draws from the root for each view. With the route as a state below the root, preact would keep the nodes of the first view in
 * memory for ever.
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

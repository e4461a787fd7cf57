/** Changes the address without a new entry in the history. */
export function replaceRoute(hash: string): void {
  history.replaceState(null, '', hash)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

// The current view and its arguments, as the part of the address after `#`.

export const views = ['map', 'service', 'packet', 'changes', 'hands-on', 'tour', 'game'] as const
export type View = (typeof views)[number]

export interface Route {
  readonly view: View
  readonly query: Readonly<Record<string, string>>
}

export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?')
  const view = views.find((each) => each === path) ?? 'map'
  return { view, query: Object.fromEntries(new URLSearchParams(search)) }
}

export function formatRoute(view: View, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(name, value)
  const text = search.toString()
  return text === '' ? `#/${view}` : `#/${view}?${text}`
}

/** The setting at a path: `conntrack.tcpBeLiberal`. */
export function valueAt(config: object, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], config)
}

// Whether this network namespace has tables of iptables-legacy, without running it.

/** The kernel names them here from the first use on, of IPv4 and IPv6; it is where iptables-legacy-save looks, too. */
const NAMES = ['/proc/self/net/ip_tables_names', '/proc/self/net/ip6_tables_names']

/** True where it is unknown. */
export function hasLegacyTables(read: (file: string) => string): boolean {
  return NAMES.some((file) => {
    try {
      return read(file).trim() !== ''
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== 'ENOENT'
    }
  })
}

// How one of a list of backends is chosen for a new connection, from an annotation of the Service, or for all Services of the node.
//
//     service.kube-proxy-ts.io/balance: "hash-client"

export const BALANCE_ANNOTATION = 'service.kube-proxy-ts.io/balance'

export const BALANCES = ['random', 'hash-connection', 'hash-client', 'least-connections'] as const

/**
 * `random`: as the mode chooses without us, which may also be in turn. `hash-connection`, `hash-client`: by the client's address and
 * port, or its address alone, so that all nodes choose the same. `least-connections`: who has few open connections gets more.
 */
export type Balance = (typeof BALANCES)[number]

export type HashBalance = Extract<Balance, `hash-${string}`>

export function isHash(balance: Balance): balance is HashBalance {
  return balance === 'hash-connection' || balance === 'hash-client'
}

/** What of the client is hashed; undefined: nothing. */
export function hashBy(balance: Balance): 'client' | 'connection' | undefined {
  if (balance === 'hash-client') return 'client'
  return balance === 'hash-connection' ? 'connection' : undefined
}

/** Of the service ports that do not leave it to chance. */
export function balancesOf(
  views: Iterable<{ readonly name: string; readonly backends: { readonly balance: Balance } }>,
): Map<string, Balance> {
  const found = new Map<string, Balance>()
  for (const { name, backends } of views) if (backends.balance !== 'random') found.set(name, backends.balance)
  return found
}

/** What a mode cannot do is as if nobody had asked for it. `node`: for Services that do not say. */
export function balanceFor(
  asked: Balance | undefined,
  { node, able = BALANCES }: { readonly node: Balance | undefined; readonly able: readonly Balance[] | undefined },
): Balance {
  return [asked, node].find((each) => each !== undefined && able.includes(each)) ?? 'random'
}

/** A problem: the mode has other ways only. */
export function balanceHasNoEffect(asked: Balance, able: readonly Balance[]): string {
  const allowed = able.map((each) => JSON.stringify(each)).join(', ')
  return `annotation ${BALANCE_ANNOTATION}: "${asked}" is ignored, this proxy mode has only ${allowed}`
}

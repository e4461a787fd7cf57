// Names of the table that resets connections, and of its parts.

/** What its name begins with. Each process has its own, for two may be there while one takes over from the other. */
export const ENDS_TABLE = 'kube-proxy-ends'

export const ENDED_SET = 'ended-connections'

export const CHAINS = { arriving: 'arriving', sentHere: 'sent-here', ended: 'ended' } as const

/** The version of kube-proxy whose flags, fields and defaults this program follows. */
export const compatibleWith = { major: 1, minor: 37, patch: 0 } as const

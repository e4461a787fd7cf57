/** Whose address backends see. */
export type SeenAs = 'client' | 'node'

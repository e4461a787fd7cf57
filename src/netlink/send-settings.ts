// What the thread that sends and the one that it sends for have in common.

/** The first of the words. */
export const STATE = { starting: 0, idle: 1, sending: 2, ended: 3 } as const

export interface SendSettings {
  readonly fd: number
  /** The state, the length of what is to be sent, and how much of it was. */
  readonly words: SharedArrayBuffer
  readonly bytes: SharedArrayBuffer
}

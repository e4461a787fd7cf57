// Colours for terminals.

export type Paint = (how: 'good' | 'bad' | 'bold' | 'dim', text: string) => string

export const plain: Paint = (_how, text) => text

const CODES = { good: 32, bad: 31, bold: 1, dim: 2 } as const

export const colourful: Paint = (how, text) => (text === '' ? '' : `\x1b[${CODES[how]}m${text}\x1b[0m`)

/** Colours where a terminal shows the text and the user has not said otherwise (no-color.org). */
export function paintFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const isRefused = (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  return stream.isTTY === true && !isRefused ? colourful : plain
}

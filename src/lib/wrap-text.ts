/** Breaks a text into lines at its spaces. Colours count for nothing. */
export function wrapText(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1)!
    if (last !== '' && visibleLength(last) + 1 + visibleLength(word) > width) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines
}

function visibleLength(text: string): number {
  // oxlint-disable-next-line no-control-regex -- The escape sequences of colours.
  return text.replace(/\x1b\[[0-9;]*m/g, '').length
}

// Golden tables are mostly the same: what every table has stands in one file, and each case tells what it has beyond that.

/** The sets, maps and chains of a table's text that differ from those of the base, and the names of those that are missing. */
export function formatBeyond(text: string, base: string): string {
  const known = new Set(blocksOf(base))
  const blocks = blocksOf(text)
  const names = new Set(blocks.map(nameOf))
  const missing = [...known].map(nameOf).filter((name) => !names.has(name))
  const [table = ''] = text.split('\n', 1)
  const lines = [...missing.map((name) => `  # without ${name}`), ...blocks.filter((block) => !known.has(block))]
  return `${table}\n${lines.join('\n\n')}\n}\n`
}

/** Each with its lines as they are. */
function blocksOf(text: string): string[] {
  return text.match(/^ {2}\S.* \{\n(?: {3}.*\n)* {2}\}$/gm) ?? []
}

function nameOf(block: string): string {
  return block.slice(0, block.indexOf(' {')).trim()
}

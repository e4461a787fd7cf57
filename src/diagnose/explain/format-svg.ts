// The way of a packet as a picture: hook below hook, and where it ends.

import type { Explanation } from './explanation.ts'
import { planPicture } from './picture.ts'

const LINE = 18
const PAD = 12
const GAP = 26
/** Of a character of the font, which is one of fixed width. */
const CHARACTER = 7.3
const LONGEST = 130
const COLOURS = { good: ['#d5f5d5', '#2a7d2a'], bad: ['#f8d7d7', '#aa2222'], off: ['#eeeeee', '#999999'] } as const

interface Box {
  readonly head: string
  readonly lines: readonly string[]
  readonly fill: string
  readonly stroke: string
}

export function formatSvg(explanation: Explanation): string {
  const { title, start, hooks, ends } = planPicture(explanation)
  const boxes: Box[] = [
    { head: 'packet', lines: [start], fill: '#e3ecfa', stroke: '#3b62a8' },
    ...hooks.map(({ name, lines }): Box => ({ head: name, lines, fill: '#ffffff', stroke: '#444444' })),
    ...ends.map(({ text, kind }): Box => ({
      head: '',
      lines: [text],
      fill: COLOURS[kind][0],
      stroke: COLOURS[kind][1],
    })),
  ]
  const all = boxes.flatMap(({ head, lines }) => [head, ...lines]).map((line) => cut(line).length)
  const width = Math.ceil(Math.max(cut(title).length, ...all) * CHARACTER) + 4 * PAD
  let y = PAD + LINE + GAP / 2
  const parts: string[] = [text(PAD, PAD + LINE, cut(title), 'font-weight="bold"')]
  for (const [i, box] of boxes.entries()) {
    const height = (box.lines.length + (box.head === '' ? 0 : 1)) * LINE + PAD
    parts.push(drawBox(box, { y, height, width: width - 2 * PAD }))
    const isLast = i === boxes.length - 1
    const isEnd = i > hooks.length
    // Ends stand one below the other, without arrows between them.
    if (!isLast && !isEnd) parts.push(arrow(width / 2, y + height, GAP))
    y += height + (isEnd ? GAP / 3 : GAP)
  }
  const height = Math.ceil(y)
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="12">`,
    '<rect width="100%" height="100%" fill="#fafafa"/>',
    ...parts,
    '</svg>',
  ].join('\n')}\n`
}

function drawBox(
  { head, lines, fill, stroke }: Box,
  { y, height, width }: { y: number; height: number; width: number },
): string {
  const rows = head === '' ? lines : [head, ...lines]
  return [
    `<rect x="${PAD}" y="${y}" width="${width}" height="${height}" rx="5" fill="${fill}" stroke="${stroke}"/>`,
    ...rows.map((line, i) =>
      text(2 * PAD, y + LINE * (i + 1), cut(line), i === 0 && head !== '' ? 'font-weight="bold"' : ''),
    ),
  ].join('\n')
}

function arrow(x: number, y: number, length: number): string {
  const tip = y + length
  return `<path d="M${x} ${y} V${tip - 5} M${x - 4} ${tip - 7} L${x} ${tip} L${x + 4} ${tip - 7}" fill="none" stroke="#444444"/>`
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${x}" y="${y}" xml:space="preserve"${attributes === '' ? '' : ` ${attributes}`}>${escape(content)}</text>`
}

function cut(line: string): string {
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** What XML may not hold at all is shown as a question mark. */
function escape(content: string): string {
  return content.replace(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, '?').replace(/[&<>"]/g, (each) => ENTITIES[each]!)
}

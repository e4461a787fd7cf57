// The table of kernels in docs/reference/compatibility.md: a row for each kernel, made of what the guest printed.

const start = '<!-- kernels: made by scripts/kernels --write -->'
const end = '<!-- /kernels -->'

/** `lines`: of the guest, as `PASS nftables: TCP, pod to cluster IP (1.7 s)`. A mode that was not finished is not passed. */
export function formatRow({ kernel, architecture, modes, lines, commit, date }) {
  const results = modes.map((mode) => {
    const of = (word) => lines.filter((line) => line.startsWith(`${word} ${mode}: `))
    const [passed, failed] = [of('PASS'), of('FAIL')]
    const isFinished = [...passed, ...failed].some((line) => line.includes(': removes what it wrote'))
    const what = failed.map((line) => line.replace(/^FAIL \w+: (.*?) \([\d.]+ s\): .*$/, '$1'))
    const rest = isFinished ? '' : `${what.length > 0 ? '; ' : ''}not finished`
    return `${mode} ${passed.length} of ${passed.length + failed.length}${what.length > 0 || rest !== '' ? ` (${what.join('; ')}${rest})` : ''}`
  })
  return `| ${kernel} | ${architecture} | ${results.join(', ')} | ${date.toISOString().slice(0, 10)}, ${commit} |`
}

/** The text with this row in place of the one for the same kernel. */
export function replaceRow(text, row) {
  const from = text.indexOf(start)
  const to = text.indexOf(end)
  if (from < 0 || to < 0) throw new Error('Cannot write the table: its marks are missing in compatibility.md')
  const key = (line) => line.split('|').slice(1, 3).join('|')
  const rows = text
    .slice(from + start.length, to)
    .trim()
    .split('\n')
    .slice(2)
  const all = [...rows.filter((each) => key(each) !== key(row)), row].sort((a, b) => (a < b ? -1 : 1))
  const head = '| kernel of Debian | processor | checks passed, by mode | when, commit |\n| --- | --- | --- | --- |'
  return `${text.slice(0, from)}${start}\n\n${head}\n${all.join('\n')}\n\n${text.slice(to)}`
}

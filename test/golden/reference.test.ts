// docs/reference is made of the program's own tables. After a wanted change: npm run golden.

import { expect, it } from 'vitest'
import { formatHelp } from '../../src/cli/help.ts'
import { modeNames, modes } from '../../src/modes/all.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { registerUserspaceMetrics } from '../../src/modes/userspace/report.ts'

const reference = new URL('../../docs/reference/', import.meta.url).pathname

it('docs/reference/flags.md is what --help prints', async () => {
  const text = `# Flags

What \`kube-proxy --help\` prints. This page is made by a test.

\`\`\`
${formatHelp(modes).trimEnd()}
\`\`\`
`
  await expect(text).toMatchFileSnapshot(`${reference}flags.md`)
})

it('docs/reference/metrics.md lists the metrics of every mode', async () => {
  const modesOf = new Map<string, string[]>()
  const rows = new Map<string, string>()
  for (const { name: mode, metrics: shown } of modes) {
    const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
    const metrics = createMetrics({ shown, build })
    if (mode === 'userspace') registerUserspaceMetrics(metrics, [])
    for (const { name, kind, labels, help } of metrics.definitions()) {
      modesOf.set(name, [...(modesOf.get(name) ?? []), mode])
      rows.set(name, `${kind} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help}`)
    }
  }
  const lines = [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, rest]) => {
      const shownIn = modesOf.get(name)!
      return `| \`${name}\` | ${rest} | ${shownIn.length === modeNames.length ? 'all' : shownIn.join(', ')} |`
    })
  const text = `# Metrics

Served on the metrics port (127.0.0.1:10249 unless configured otherwise) under \`/metrics\`. Those that begin with \`kubeproxy_\` are
kube-proxy's, with its names, labels and buckets; those that begin with \`kubeproxyts_\` are our own. This page is made by a test.

| metric | kind | labels | what it tells | modes |
| --- | --- | --- | --- | --- |
${lines.join('\n')}
`
  await expect(text).toMatchFileSnapshot(`${reference}metrics.md`)
})

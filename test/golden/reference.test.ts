// Makes docs/reference from the program's own tables. After a deliberate change: npm run golden.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { differences } from '../../src/diagnose/check/differences.ts'
import { changeKinds } from '../../src/diagnose/leave/change-kinds.ts'
import { findingKinds, subjects } from '../../src/diagnose/check/finding-kinds.ts'
import { commands } from '../../src/cli/commands.ts'
import { formatHelp } from '../../src/cli/help.ts'
import type { FieldTable, LeafField } from '../../src/config/field-kinds.ts'
import { apiVersion, configurationFields, kind } from '../../src/config/fields.ts'
import { eventKinds } from '../../src/kube/event-kinds.ts'
import { formatCommandHelp } from '../../src/lib/command.ts'
import { formatDuration } from '../../src/lib/duration.ts'
import { modeNames, modes } from '../../src/modes/all.ts'
import { localhostMetrics } from '../../src/metrics/kube-proxy.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { overLimitMetric } from '../../src/modes/over-limit.ts'
import { registerUserspaceMetrics } from '../../src/modes/userspace/report.ts'
import { root, sources } from '../architecture/imports.ts'
import { logLines } from './log-lines.ts'
import { readKeys } from './read-keys.ts'

const reference = new URL('../../docs/reference/', import.meta.url).pathname

it('docs/reference/flags.md is what --help prints', async () => {
  const text = `# Flags

What \`kube-proxy --help\` prints. A test makes this page.

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
    if (mode === 'userspace' || mode === 'nftables') metrics.register(overLimitMetric('kube-proxy', []))
    if (mode === 'userspace') registerUserspaceMetrics(metrics, [], new Map())
    const none = () => []
    if (mode === 'nftables') metrics.register(...Object.values(localhostMetrics({ listeners: none, rejected: none })))
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
kube-proxy's, with its names, labels and buckets; those that begin with \`kubeproxyts_\` are our own. A test makes this page.

The page is text (version 0.0.4), or Prometheus's protobuf where the \`Accept\` header prefers it
(\`application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited\`); \`?name[]=NAME\`, also several times, shows those metrics
alone. In protobuf each histogram has native buckets beside the classic ones, as kube-proxy 1.37 writes them: the bounds grow by a factor of at most 1.1, and
by more when there would be more than 160 buckets. \`--feature-gates=NativeHistograms=false\` leaves them out. Prometheus 2.40 and later takes them with
\`--enable-feature=native-histograms\`, and then takes them instead of the classic ones: \`histogram_quantile(0.99, rate(kubeproxyts_change_duration_seconds[5m]))\`, without \`_bucket\`.

| metric | kind | labels | meaning | modes |
| --- | --- | --- | --- | --- |
${lines.join('\n')}
`
  await expect(text).toMatchFileSnapshot(`${reference}metrics.md`)
})

it('docs/reference/configuration.md lists every field of the file', async () => {
  const text = `# Configuration

Every field of a \`${kind}\` (\`${apiVersion}\`), the file that \`--config\` names. It is kube-proxy's file; fields of
older versions work, with a warning. \`kube-proxy --write-config-to=FILE\` writes the file that flags result in. The proxy applies a changed file
while it runs; it refuses one with a mistake and goes on as it was. A test makes this page.

A duration is written as Go does: \`250ms\`, \`1h30m\`. *0 too*, *empty too*: an explicit zero, or an empty text, means the default, as in kube-proxy.

${tableOfFields('', configurationFields)}

## Differences from kube-proxy

\`kube-proxy check\` names those that apply to a configuration.

| fields | |
| --- | --- |
${differences.map(({ fields, text }) => `| \`${fields}\` | ${text} |`).join('\n')}
`
  await expect(text).toMatchFileSnapshot(`${reference}configuration.md`)
})

/** The fields of a block, then its blocks, each with a heading. */
function tableOfFields(path: string, table: FieldTable): string {
  const leaves = Object.entries(table).filter(([, field]) => field.kind !== 'object')
  const rows = leaves.map(([name, field]) => rowOfField(`${path}${name}`, field as LeafField))
  const own = rows.length === 0 ? [] : ['| field | type | default | |\n| --- | --- | --- | --- |\n' + rows.join('\n')]
  const blocks = Object.entries(table).flatMap(([name, field]) => {
    if (field.kind !== 'object') return []
    const only = field.onlyInMode === undefined ? '' : ` Checked only in mode ${field.onlyInMode}, as in kube-proxy.`
    return [`## ${path}${name}\n\n${field.help}${only}\n\n${tableOfFields(`${path}${name}.`, field.fields)}`]
  })
  return [...own, ...blocks].join('\n\n')
}

const typeNames: Readonly<Record<LeafField['kind'], string>> = {
  string: 'text',
  bool: 'bool',
  'bool|annotated': 'bool or `annotated`',
  int32: 'int32',
  'int32?': 'int32 or null',
  uint32: 'uint32',
  float: 'number',
  duration: 'duration',
  'duration|nanos': 'duration, or nanoseconds',
  quantity: 'quantity',
  strings: 'list of text',
  bools: 'map of bool',
  vmodule: 'list of `filePattern`, `verbosity`',
}

function rowOfField(path: string, field: LeafField): string {
  const isEmpty =
    JSON.stringify(field.default) === JSON.stringify([]) ||
    JSON.stringify(field.default) === '{}' ||
    field.default === ''
  const value = field.kind.startsWith('duration')
    ? formatDuration(field.default as number)
    : JSON.stringify(field.default)
  const zero =
    field.zero === 'means-default' && !isZero(field) ? `; ${field.kind === 'string' ? 'empty' : '0'} too` : ''
  const legacy = field.legacy === undefined ? '' : ` *Old: ${field.legacy}.*`
  return `| \`${path}\` | ${typeNames[field.kind]} | ${isEmpty ? '' : `\`${value}\``}${zero} | ${field.help}${legacy} |`
}

function isZero(field: LeafField): boolean {
  return field.default === '' || field.default === 0 || field.default === false
}

it('docs/reference/events.md lists the Events that the source writes', async () => {
  const rows = Object.entries(eventKinds).map(
    ([reason, { type, on, when, isOfKubeProxy }]) =>
      `| \`${reason}\` | ${type} | ${on} | ${when} | ${isOfKubeProxy ? 'yes' : 'no'} |`,
  )
  const text = `# Events

Events that the proxy writes; \`kubectl describe node\` and \`kubectl get events\` show them. The reporter is \`kube-proxy\`. It does not repeat an Event within ten
minutes, and writes 25 about one Service at once and then one in five minutes. Writing Events needs the right to create \`events\`; without it, and without an API server, only the log has them. A test makes this page.

| reason | type | on | when | kube-proxy has it |
| --- | --- | --- | --- | --- |
${rows.join('\n')}
`
  await expect(text).toMatchFileSnapshot(`${reference}events.md`)
})

it('every Event is made from the table, and every row of it is used', () => {
  const files = programFiles().filter((file) => !file.endsWith('/event-kinds.ts'))
  const texts = files.map((file) => readFileSync(`${root}/${file}`, 'utf8'))
  expect(files.filter((_, i) => /\.record\(\{/.test(texts[i]!))).toEqual([])
  expect(Object.keys(eventKinds).filter((reason) => !texts.some((text) => text.includes(`'${reason}'`)))).toEqual([])
})

it('docs/reference/annotations.md lists the annotations, labels and taints that are read', async () => {
  const rows = readKeys.map(({ key, what, on, effect }) => `| \`${key}\` | ${what} | ${on} | ${effect} |`)
  const text = `# Annotations, labels and taints

Everything that the proxy reads of these. Other annotations of a Service, EndpointSlice, Endpoints or Node have no effect on it; it does not read
Pods. A test compares this page with the source.

| key | | of | what it does |
| --- | --- | --- | --- |
${rows.join('\n')}

No annotation decides topology here: the proxy follows hints of EndpointSlices (\`endpoints[].hints\`). The cluster's controllers write
them; they read \`spec.trafficDistribution\` and the annotation \`service.kubernetes.io/topology-mode\`.
`
  await expect(text).toMatchFileSnapshot(`${reference}annotations.md`)
})

it('the keys in the source are those of the page', () => {
  const found = new Set<string>()
  // What `kube-proxy test` writes, no proxy reads.
  for (const file of programFiles().filter((each) => !each.startsWith('src/probe/'))) {
    const text = readFileSync(`${root}/${file}`, 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '')
    for (const [, key] of text.matchAll(/['"`]!?([a-z0-9.-]+\.io\/[a-zA-Z0-9.-]+)['"`]/g)) found.add(key!)
    for (const [, key] of text.matchAll(/Taint = '(\w+)'/g)) found.add(key!)
  }
  // These are groups of the API with their versions, and what an extension in a kubeconfig is called.
  const versions = [...found].filter((key) => /\/(v\d+((alpha|beta)\d+)?|exec)$/.test(key))
  expect([...found].filter((key) => !versions.includes(key)).sort()).toEqual(readKeys.map(({ key }) => key).sort())
})

it('docs/reference/check.md lists every finding', async () => {
  const rows = Object.entries(findingKinds).map(
    ([code, { about, level, when, todo }]) =>
      `| \`${code}\` | ${subjects[about]} | ${level} | ${when} | ${todo ?? ''} |`,
  )
  const text = `# kube-proxy check

\`\`\`
${formatCommandHelp(commands.find(({ name }) => name === 'check')!).trimEnd()}
\`\`\`

It reads files of the kernel (\`/proc\`, \`/sys\`, the list of modules), reads tables, links and virtual servers over netlink, runs
\`iptables-save\`, and sends the API server the requests that the proxy would send. It does not bind, write, create or load anything. It does not probe a module that is
installed but not loaded, because that would load it. If it cannot see the list of modules (a container without
\`/lib/modules\`), it probes nftables and IPVS all the same, and the kernel may load them then. It cannot check
whether the kernel has an IPVS scheduler whose module it cannot see, nor whether Events may be written.

## JSON

\`-o json\` prints one object. New fields may come; existing ones keep their meaning.

| field | type | |
| --- | --- | --- |
| \`version\` | text | of the program |
| \`canRun\` | bool | true with exit status 0, false with 1: no finding is a problem |
| \`nodeName\` | text | the name of the Node that the proxy would look for; empty when the configuration cannot be used |
| \`mode.asked\` | text | the mode that is configured, or the default |
| \`mode.chosen\` | text or null | the mode that would run; null when none can |
| \`mode.givenUp\` | list of text | the modes that cannot run and were replaced by others, in order |
| \`findings[].code\` | text | one of those below |
| \`findings[].about\` | text | ${Object.keys(subjects)
    .map((subject) => `\`${subject}\``)
    .join(', ')} |
| \`findings[].level\` | text | \`ok\`, \`note\` (good to know), \`warning\` (it runs, but perhaps not as meant), \`problem\` (it cannot run, or cannot serve) |
| \`findings[].message\` | text | for people; may change |
| \`findings[].todo\` | text or null | what to do |

    kube-proxy check -o json --config=FILE | jq -r '.findings[] | select(.level == "problem") | .message'

## Findings

| code | about | level | when | what to do |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

## Leaving a mode

\`kube-proxy check --from=ipvs\`, or \`--from=iptables\`, compares that mode with the one that \`--to\` names: for the Services of this cluster, from the
API server or \`--manifests\`, and for this node with its configuration. Put what you mean to set in the new mode on the command line or into the file, and run it again: what is brought back
is not listed any more. It needs the right to list Services, EndpointSlices, Nodes and ServiceCIDRs, and changes nothing. It does not know what programs outside of this node do.

With \`-o json\`: \`version\`, \`nodeName\`, \`source\` (where the Services are from), \`from\`, \`to\`, \`services\` (how many were looked at), \`isSame\` (true with exit status 0), and \`changes[]\`. Each change has
\`code\`, \`effect\`, and \`message\`, which is for people and may change. \`todo\` is the annotation, flag or field that brings it back, or null. \`services\` has the \`namespace/name\` of all that it concerns; empty means the node.

| code | effect | when |
| --- | --- | --- |
${Object.entries(changeKinds)
  .map(([code, { effect, when }]) => `| \`${code}\` | ${effect} | ${when} |`)
  .join('\n')}

\`loses\` and \`differs\` make the exit status 1; \`gains\` and \`note\` do not.

A test makes this page.
`
  await expect(text).toMatchFileSnapshot(`${reference}check.md`)
})

it('docs/reference/log.md lists the lines of the log that matter', async () => {
  const rows = logLines.map(({ severity, text, means }) => `| ${severity} | \`${text}\` | ${means} |`)
  const text = `# Log lines

What the program logs to standard error: every error and warning with a fixed text, and the important lines without \`-v\`. Lines
about an object or a file name it and say what is wrong. Values follow the text as \`key="value"\`; an error is in \`err\`. With
\`--logging-format=json\` the text is in \`msg\`. A test compares this page with the source.

| severity | text | what it means, and what to do |
| --- | --- | --- |
${rows.join('\n')}
`
  await expect(text).toMatchFileSnapshot(`${reference}log.md`)
})

it('the lines of the log are those of the page', () => {
  const found = new Map<string, string>()
  const texts = programFiles().map((file) => readFileSync(`${root}/${file}`, 'utf8'))
  const call = /[lL]og(?:ger)?\.(info|warn|error)\(\s*(?:[\w.]+,\s*)?(['`])(.*?)\2/g
  for (const [, severity, , line] of texts.flatMap((text) => [...text.matchAll(call)])) {
    found.set(line!.replace(/\$\{.*\}/, '...'), severity!)
  }
  // They are about a line of a file.
  for (const line of ['...', '..., passing over it']) found.delete(line)
  const listed = logLines.map(({ text }) => text)
  const isListed = (line: string) =>
    listed.some((text) => (text.endsWith(': ...') ? line.startsWith(text.slice(0, -3)) : text === line))
  const matters = [...found.keys()].filter((line) => found.get(line) !== 'info')
  expect(
    matters.filter((line) => !isListed(line)),
    'missing in test/golden/log-lines.ts',
  ).toEqual([])
  const source = texts.join('\n')
  for (const { text, severity } of logLines) {
    const [start = ''] = text.split('...')
    expect(source.includes(start), text).toBe(true)
    const known = found.get(text)
    if (known !== undefined) expect(known.replace('warn', 'warning'), text).toBe(severity)
  }
})

/** Of the program itself, without the sandbox and without tests. */
function programFiles(): string[] {
  return sources().filter((file) => !file.startsWith('packages/sandbox/src/'))
}

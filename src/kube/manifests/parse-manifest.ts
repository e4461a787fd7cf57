// The objects in a file of YAML or JSON, and their errors with line numbers.

import { LineCounter, isNode, parseAllDocuments, type Document } from 'yaml'
import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import { endpointsShape, endpointSliceShape, nodeShape, serviceCidrShape, serviceShape } from './object-shapes.ts'
import { formatPath, wrong, type Complaint, type Path, type Shape } from './shape.ts'

export type ManifestKind = 'Service' | 'EndpointSlice' | 'Endpoints' | 'Node' | 'ServiceCIDR'

export interface ManifestObject {
  readonly kind: ManifestKind
  readonly json: JsonObject
  readonly line: number
}

/** A message for the author of the file. */
export interface Remark {
  readonly severity: 'error' | 'warning'
  readonly line: number
  readonly text: string
}

export interface Manifest {
  /** Empty when there is an error. */
  readonly objects: readonly ManifestObject[]
  readonly remarks: readonly Remark[]
}

interface KnownKind {
  readonly apiVersions: readonly string[]
  readonly shape: Shape
}

const kinds: Readonly<Record<ManifestKind, KnownKind>> = {
  Service: { apiVersions: ['v1'], shape: serviceShape },
  EndpointSlice: { apiVersions: ['discovery.k8s.io/v1'], shape: endpointSliceShape },
  Endpoints: { apiVersions: ['v1'], shape: endpointsShape },
  Node: { apiVersions: ['v1'], shape: nodeShape },
  ServiceCIDR: { apiVersions: ['networking.k8s.io/v1', 'networking.k8s.io/v1beta1'], shape: serviceCidrShape },
}

/** Reads all documents of a file. With one error none of them counts: half a file is worse than its last version. */
export function parseManifest(text: string): Manifest {
  const lines = new LineCounter()
  const remarks: Remark[] = []
  const objects: ManifestObject[] = []
  for (const document of parseAllDocuments(text, { lineCounter: lines })) {
    if (!('contents' in document)) continue
    // Further errors mostly follow from the first.
    for (const { pos, message, code } of document.errors.slice(0, 1)) {
      remarks.push({ severity: 'error', line: lines.linePos(pos[0]).line, text: `${sentence(message)} (${code})` })
    }
    if (document.errors.length === 0) parseDocument(document, lines, { objects, remarks })
  }
  const isBad = remarks.some(({ severity }) => severity === 'error')
  return { objects: isBad ? [] : objects, remarks }
}

interface Found {
  readonly objects: ManifestObject[]
  readonly remarks: Remark[]
}

function parseDocument(document: Document.Parsed, lines: LineCounter, found: Found): void {
  const lineOf = (path: Path) => lineAt(document, path, lines)
  let value: unknown
  try {
    value = document.toJS()
  } catch (error) {
    // An alias without an anchor, or too many aliases.
    found.remarks.push({ severity: 'error', line: lineOf([]), text: (error as Error).message })
    return
  }
  if (value === null || value === undefined) return
  decodeObject(value, { path: [], lineOf }, found)
}

interface Position {
  readonly path: Path
  readonly lineOf: (path: Path) => number
}

function decodeObject(value: unknown, { path, lineOf }: Position, found: Found): void {
  const report = ({ severity, path: within, message }: Complaint) => {
    const field = formatPath(within)
    found.remarks.push({
      severity,
      line: lineOf([...path, ...within]),
      text: field === '' ? message : `${field}: ${message}`,
    })
  }
  if (!isJsonObject(value)) return report(wrong([], 'must be an API object'))
  const { kind, apiVersion } = value
  if (typeof kind !== 'string' || kind === '') return report(wrong(['kind'], 'required'))
  if (kind.endsWith('List') && Array.isArray(value['items'])) {
    for (const [index, item] of value['items'].entries()) {
      decodeObject(item, { path: [...path, 'items', index], lineOf }, found)
    }
    return
  }
  const known = Object.hasOwn(kinds, kind) ? kinds[kind as ManifestKind] : undefined
  if (known === undefined) {
    return report({ severity: 'warning', path: ['kind'], message: `a proxy has no use for a ${kind}, passing over it` })
  }
  if (!known.apiVersions.includes(String(apiVersion))) {
    return report(
      wrong(['apiVersion'], `must be ${known.apiVersions[0]} for a ${kind}, not ${JSON.stringify(apiVersion)}`),
    )
  }
  for (const complaint of known.shape(value, [])) report(complaint)
  found.objects.push({ kind: kind as ManifestKind, json: value, line: lineOf(path) })
}

/** The line of a field, or of the innermost object around it that exists. */
function lineAt(document: Document.Parsed, path: Path, lines: LineCounter): number {
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  }
  return 1
}

/** The first line of the parser's message, without the position, which we add ourselves. */
function sentence(message: string): string {
  return (message.split('\n')[0] ?? message).replace(/ at line \d+, column \d+:?$/, '')
}

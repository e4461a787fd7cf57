// What `kubectl kustomize` makes of the files in deploy/: as much of kustomize as they use. The kubectl of Debian 12 is too old to
// know components; where one is newer, a test compares the two.

import { createHash } from 'node:crypto'
import { statSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  metadata: { name: string; namespace?: string; labels?: Record<string, string> }
  readonly [field: string]: unknown
}

interface Kustomization {
  readonly namespace?: string
  readonly resources?: readonly string[]
  readonly components?: readonly string[]
  readonly patches?: readonly { readonly target: { kind: string; name: string }; readonly patch: string }[]
  readonly configMapGenerator?: readonly ConfigMapArgs[]
  readonly images?: readonly { readonly name: string; readonly newName?: string; readonly newTag?: string }[]
}

interface ConfigMapArgs {
  readonly name: string
  readonly behavior?: 'merge'
  readonly literals: readonly string[]
}

export interface Operation {
  readonly op: string
  readonly path: string
  readonly value?: unknown
}

const known = ['apiVersion', 'kind', 'namespace', 'resources', 'components', 'patches', 'configMapGenerator', 'images']

/** The objects of a folder with a kustomization.yaml, and of other components than those that it names. */
export function renderKustomization(folder: string, components: readonly string[] = []): Manifest[] {
  const objects = render(folder)
  for (const component of components) patchWith(component, objects)
  return withHashes(objects)
}

function render(folder: string): Manifest[] {
  const {
    resources = [],
    components = [],
    patches = [],
    configMapGenerator = [],
    namespace,
    images = [],
  } = read(folder)
  const objects = resources.flatMap((name) => readResource(join(folder, name)))
  applyPatches(folder, patches, objects)
  for (const name of components) patchWith(join(folder, name), objects)
  for (const args of configMapGenerator) generate(args, objects)
  if (namespace !== undefined)
    for (const { kind, metadata } of objects) if (!kind.startsWith('Cluster')) metadata.namespace = namespace
  for (const image of images) visit(objects, (key, value) => (key === 'image' ? renamed(value, image) : value))
  return objects
}

function read(folder: string): Kustomization {
  const kustomization = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as Kustomization
  const unknown = Object.keys(kustomization).filter((key) => !known.includes(key))
  if (unknown.length > 0) throw new Error(`Cannot render ${folder}: ${unknown.join(', ')} is not known here`)
  return kustomization
}

function readResource(path: string): Manifest[] {
  if (statSync(path).isDirectory()) return render(path)
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as Manifest)
}

function patchWith(component: string, objects: Manifest[]): void {
  const { resources = [], patches = [] } = read(component)
  objects.push(...resources.flatMap((name) => readResource(join(component, name))))
  applyPatches(component, patches, objects)
}

function applyPatches(folder: string, patches: NonNullable<Kustomization['patches']>, objects: Manifest[]): void {
  for (const { target, patch } of patches) {
    const object = objects.find(({ kind, metadata }) => kind === target.kind && metadata.name === target.name)
    if (object === undefined) throw new Error(`Cannot patch with ${folder}: there is no ${target.kind} ${target.name}`)
    for (const operation of parse(patch) as Operation[]) applyOperation(object, operation)
  }
}

/** An operation of RFC 6902. */
function applyOperation(object: unknown, { op, path, value }: Operation): void {
  const keys = path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = keys.pop()!
  const holder = keys.reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], object)
  if (typeof holder !== 'object' || holder === null) throw new Error(`Cannot patch: ${path} is not there`)
  if (op === 'add' && Array.isArray(holder) && last === '-') holder.push(value)
  else if (op === 'add' && !Array.isArray(holder)) (holder as Record<string, unknown>)[last] = value
  else if (op === 'remove' && Array.isArray(holder) && last in holder) holder.splice(Number(last), 1)
  else if (op === 'remove' && last in holder) delete (holder as Record<string, unknown>)[last]
  else if (op === 'replace' && last in holder) (holder as Record<string, unknown>)[last] = value
  else throw new Error(`Cannot patch: ${op} of ${path} is not known here`)
}

function generate({ name, behavior, literals }: ConfigMapArgs, objects: Manifest[]): void {
  const data = Object.fromEntries(literals.map((literal) => /^([^=]+)=([\s\S]*)$/.exec(literal)!.slice(1)))
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)
  if ((found === undefined) === (behavior === 'merge'))
    throw new Error(`Cannot generate the ConfigMap ${name}: is it there or not?`)
  if (found === undefined) objects.push({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })
  else Object.assign(found['data'] as object, data)
}

function renamed(
  value: unknown,
  { name, newName = name, newTag }: NonNullable<Kustomization['images']>[number],
): unknown {
  const [, given, tag] = /^([^:]+)(:.*)?$/.exec(String(value))!
  return given === name ? `${newName}${newTag === undefined ? (tag ?? '') : `:${newTag}`}` : value
}

/** Generated ConfigMaps are named by what is in them, wherever they are named. */
function withHashes(objects: Manifest[]): Manifest[] {
  const names = new Map(
    objects
      .filter(({ kind }) => kind === 'ConfigMap')
      .map((map) => [map.metadata.name, `${map.metadata.name}-${hashOf(map)}`]),
  )
  const refer = (key: string, value: unknown) =>
    /^configMap(KeyRef|Ref)?$/.test(key)
      ? { ...(value as object), name: names.get(nameIn(value)) ?? nameIn(value) }
      : value
  for (const object of objects) {
    if (object.kind === 'ConfigMap') object.metadata.name = names.get(object.metadata.name)!
    else visit(object, refer)
  }
  return objects
}

function nameIn(reference: unknown): string {
  return (reference as { name: string }).name
}

/** As kustomize does it: of JSON with sorted keys and no name, and without digits that could be read as words. */
function hashOf({ data }: Manifest): string {
  const sorted = Object.fromEntries(Object.entries(data as Record<string, string>).sort(([a], [b]) => (a < b ? -1 : 1)))
  const hex = createHash('sha256')
    .update(JSON.stringify({ data: sorted, kind: 'ConfigMap', name: '' }))
    .digest('hex')
  const letters: Record<string, string> = { 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' }
  return hex.slice(0, 10).replaceAll(/[013ae]/g, (digit) => letters[digit]!)
}

/** Replaces each value below by what the function makes of it. */
function visit(value: unknown, change: (key: string, value: unknown) => unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, part] of Object.entries(value)) {
    const next = change(key, part)
    ;(value as Record<string, unknown>)[key] = next
    visit(next, change)
  }
}

// kubeconfig files: the cluster and the user of the current context.

import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { parse, YAMLParseError } from 'yaml'
import { messageOf } from '../../lib/errors.ts'
import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import { AccessError, type Authentication, type ClusterAccess, type Material } from './cluster-access.ts'
import { execPluginFrom } from './exec-config.ts'
import { parseProxy } from './proxy.ts'

export interface KubeconfigOptions {
  /** Empty: no file, which with `master` means an anonymous connection to it. */
  readonly path: string
  /** `--master`: replaces the server of the file. */
  readonly master?: string
  /** In place of the file's current context. */
  readonly context?: string
}

/** Reads a kubeconfig file. Credentials reads the certificates and tokens in other files, again whenever they change. */
export function readKubeconfig(options: KubeconfigOptions): ClusterAccess {
  const { path, master = '' } = options
  if (path === '') return resolveAccess(NO_FILE, new Section('', {}), new Section('', {}), master)
  const file: KubeconfigFile = { path, folder: dirname(resolve(path)) }
  const config = parseKubeconfig(file)
  const contextName = options.context || stringOf(config['current-context'])
  const contexts = entries(file, config, 'contexts', 'context')
  // client-go's rule: no current context means the empty one, which needs --master.
  if (contextName === '' && master !== '') {
    return resolveAccess(file, new Section('', {}), new Section('', {}), master)
  }
  if (contextName === '') throw fileError(file, 'current-context is not set')
  const context = contexts.get(contextName)
  if (context === undefined) throw fileError(file, missing('context', contextName, contexts))
  const clusters = entries(file, config, 'clusters', 'cluster')
  const clusterName = context.string('cluster')
  const cluster = clusters.get(clusterName)
  if (cluster === undefined && master === '') throw fileError(file, missing('cluster', clusterName, clusters))
  const users = entries(file, config, 'users', 'user')
  const userName = context.string('user')
  const user = userName === '' ? new Section('', {}) : users.get(userName)
  if (user === undefined) throw fileError(file, missing('user', userName, users))
  return resolveAccess(file, cluster ?? new Section('', {}), user, master)
}

interface KubeconfigFile {
  readonly path: string
  /** Relative paths in the file are relative to this. */
  readonly folder: string
}

const NO_FILE: KubeconfigFile = { path: '', folder: '/' }

/** One named entry of the file, with its path for messages. */
class Section {
  readonly path: string
  readonly fields: JsonObject

  constructor(path: string, fields: JsonObject) {
    this.path = path
    this.fields = fields
  }

  string(name: string): string {
    return stringOf(this.fields[name])
  }
}

function parseKubeconfig(file: KubeconfigFile): JsonObject {
  let text: string
  try {
    text = readFileSync(file.path, 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such file or directory' : messageOf(error)
    throw new AccessError(`Cannot read kubeconfig ${file.path}: ${reason}`, { cause: error })
  }
  let config: unknown
  try {
    // Warnings would quote lines, too.
    config = parse(text, { logLevel: 'error' })
  } catch (error) {
    throw fileError(file, whereBroken(error))
  }
  if (!isJsonObject(config)) throw fileError(file, 'it is not a mapping')
  return config
}

/** The error and its line. The parser's own message quotes the line, which may have the token. */
function whereBroken(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return 'it is not YAML'
  const line = error.linePos?.[0].line
  return `it is not YAML: ${error.code}${line === undefined ? '' : ` on line ${line}`}`
}

function entries(file: KubeconfigFile, config: JsonObject, list: string, field: string): Map<string, Section> {
  const found = new Map<string, Section>()
  const value = config[list] ?? []
  if (!Array.isArray(value)) throw fileError(file, `${list}: must be a list`)
  for (const [index, entry] of (value as unknown[]).entries()) {
    if (!isJsonObject(entry)) throw fileError(file, `${list}[${index}]: must be a mapping`)
    const fields = entry[field] ?? {}
    if (!isJsonObject(fields)) throw fileError(file, `${list}[${index}].${field}: must be a mapping`)
    const name = stringOf(entry['name'])
    // The first of a name wins, as in client-go.
    if (!found.has(name)) found.set(name, new Section(`${list}[${index}].${field}`, fields))
  }
  return found
}

function resolveAccess(file: KubeconfigFile, cluster: Section, user: Section, master: string): ClusterAccess {
  const ca = material(file, cluster, 'certificate-authority')
  const verify = cluster.fields['insecure-skip-tls-verify'] !== true
  if (!verify && ca !== undefined) {
    throw fileError(file, `${cluster.path}: certificate-authority cannot be combined with insecure-skip-tls-verify`)
  }
  const cert = material(file, user, 'client-certificate')
  const key = material(file, user, 'client-key')
  if ((cert === undefined) !== (key === undefined)) {
    throw fileError(file, `${user.path}: client-certificate and client-key must be given together`)
  }
  const hasTls = ca !== undefined || cert !== undefined || !verify
  const server = parseServer(file, master || cluster.string('server'), hasTls)
  const proxy = cluster.string('proxy-url')
  return {
    server,
    tls: {
      ca,
      clientCertificate: cert === undefined || key === undefined ? undefined : { cert, key },
      serverName: cluster.string('tls-server-name') || undefined,
      verify,
    },
    authentication: authenticationOf(file, user, { cluster, server }),
    impersonation: impersonationOf(user),
    proxyUrl: proxy === '' ? undefined : parseProxy(`${file.path} ${cluster.path}.proxy-url`, proxy),
  }
}

function authenticationOf(
  file: KubeconfigFile,
  user: Section,
  target: { readonly cluster: Section; readonly server: URL },
): Authentication {
  const tokenFile = user.string('tokenFile')
  if (tokenFile !== '') return { type: 'tokenFile', file: resolve(file.folder, tokenFile) }
  const token = user.string('token')
  if (token !== '') return { type: 'token', token }
  const username = user.string('username')
  if (username !== '') return { type: 'basic', username, password: user.string('password') }
  const exec = user.fields['exec']
  if (exec !== undefined && exec !== null) {
    const plugin = execPluginFrom(exec, { folder: file.folder, server: target.server, cluster: target.cluster.fields })
    if (typeof plugin === 'string') throw fileError(file, `${user.path}.exec.${plugin}`)
    return { type: 'exec', plugin }
  }
  if (user.fields['auth-provider'] !== undefined) {
    throw fileError(file, `${user.path}.auth-provider: no longer exists in Kubernetes, use exec instead`)
  }
  return { type: 'anonymous' }
}

function impersonationOf(user: Section): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {}
  if (user.string('as') !== '') headers['Impersonate-User'] = user.string('as')
  if (user.string('as-uid') !== '') headers['Impersonate-Uid'] = user.string('as-uid')
  const groups = user.fields['as-groups']
  if (Array.isArray(groups)) headers['Impersonate-Group'] = groups.map(stringOf)
  const extra = user.fields['as-user-extra']
  if (isJsonObject(extra)) {
    for (const [name, values] of Object.entries(extra)) {
      if (Array.isArray(values)) headers[`Impersonate-Extra-${encodeURIComponent(name)}`] = values.map(stringOf)
    }
  }
  return headers
}

/** `name-data` (base64) wins over `name` (a path). */
function material(file: KubeconfigFile, section: Section, name: string): Material | undefined {
  const data = section.string(`${name}-data`)
  if (data !== '') {
    const bytes = Buffer.from(data, 'base64')
    if (bytes.length === 0) throw fileError(file, `${section.path}.${name}-data: must be base64`)
    return { data: bytes }
  }
  const path = section.string(name)
  if (path === '') return undefined
  return { file: isAbsolute(path) ? path : resolve(file.folder, path) }
}

/** client-go's rule: without a scheme a server is https if the kubeconfig has TLS settings, else http. */
function parseServer(file: KubeconfigFile, text: string, hasTls: boolean): URL {
  if (text === '') throw fileError(file, 'the cluster has no server')
  const withScheme = /^[a-z]+:\/\//i.test(text) ? text : `${hasTls ? 'https' : 'http'}://${text}`
  const url = parseUrl(withScheme)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw fileError(file, `server: Invalid value: ${JSON.stringify(text)}: must be an http or https URL`)
  }
  // The log and Events would show them with the server's URL.
  if (url.username !== '' || url.password !== '') {
    throw fileError(file, 'server: must not have a user or a password in it; users[].user has fields for them')
  }
  return url
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

function missing(what: string, name: string, known: ReadonlyMap<string, Section>): string {
  const names = [...known.keys()].map((key) => JSON.stringify(key)).join(', ')
  return `there is no ${what} ${JSON.stringify(name)}, there ${known.size === 0 ? 'are none' : `is ${names}`}`
}

function fileError(file: KubeconfigFile, reason: string): AccessError {
  const where = file.path === '' ? 'API server access' : `kubeconfig ${file.path}`
  return new AccessError(`Cannot use ${where}: ${reason}`)
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

// Runs a credential plugin, and keeps its credential until that expires or the API server refuses it.

import type { ExecFileException } from 'node:child_process'
import { isJsonObject } from '../../lib/json.ts'
import { AccessError, type ExecPluginConfig } from './cluster-access.ts'

/** A plugin that takes longer hangs. */
const PLUGIN_TIMEOUT_MS = 60_000

/** A credential has some kilobytes. */
const MOST_PRINTED = 1024 * 1024

const LONGEST_SHOWN = 1000

/** Credentials are replaced this long before they expire, so that no request in flight outlives them. */
const EARLY_MS = 10_000

export interface ExecCredential {
  readonly token: string | undefined
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined
  /** Undefined: good until refused. */
  readonly expiresMs: number | undefined
}

export class ExecPlugin {
  readonly #config: ExecPluginConfig
  readonly #now: () => number
  #credential: ExecCredential | undefined
  #running: Promise<ExecCredential> | undefined

  constructor(config: ExecPluginConfig, now: () => number = Date.now) {
    this.#config = config
    this.#now = now
  }

  async credential(): Promise<ExecCredential> {
    const known = this.#credential
    if (known !== undefined && (known.expiresMs === undefined || known.expiresMs - EARLY_MS > this.#now())) return known
    // Several requests at once wait for the same run.
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** The API server refused the credential: the plugin runs again for the next request. */
  forget(): void {
    this.#credential = undefined
  }

  async #run(): Promise<ExecCredential> {
    const output = await this.#execute()
    this.#credential = this.#parse(output)
    return this.#credential
  }

  #execute(): Promise<string> {
    const { apiVersion, command, args, env, cluster } = this.#config
    const spec = { interactive: false, ...(cluster === undefined ? {} : { cluster }) }
    const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec })
    const environment: NodeJS.ProcessEnv = { ...process.env }
    for (const { name, value } of env) environment[name] = value
    environment['KUBERNETES_EXEC_INFO'] = info
    return new Promise((resolve, reject) => {
      const options = { env: environment, timeout: PLUGIN_TIMEOUT_MS, maxBuffer: MOST_PRINTED }
      // Loaded here: most proxies have a token and never need it.
      const { execFile } = process.getBuiltinModule('node:child_process')
      execFile(command, [...args], options, (error, stdout, stderr) => {
        if (error === null) return resolve(stdout)
        const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
        const hint = missing && this.#config.installHint !== '' ? `\n${this.#config.installHint}` : ''
        const reason = missing ? 'no such program' : `${endingOf(error)}${stderr === '' ? '' : `: ${shown(stderr)}`}`
        reject(this.#error(`${reason}${hint}`))
      }).stdin?.end()
    })
  }

  #parse(output: string): ExecCredential {
    let value: unknown
    try {
      value = JSON.parse(output)
    } catch {
      // The parser's message would quote the output, which may be a secret.
      throw this.#error(`it printed ${output.length} characters that are no JSON`)
    }
    if (!isJsonObject(value) || value['kind'] !== 'ExecCredential') throw this.#error('it printed no ExecCredential')
    if (value['apiVersion'] !== this.#config.apiVersion) {
      throw this.#error(
        `it speaks ${JSON.stringify(value['apiVersion'])}, the kubeconfig says ${this.#config.apiVersion}`,
      )
    }
    const status = value['status']
    if (!isJsonObject(status)) throw this.#error('it printed no status')
    const token = typeof status['token'] === 'string' && status['token'] !== '' ? status['token'] : undefined
    const cert = status['clientCertificateData']
    const key = status['clientKeyData']
    const clientCertificate = typeof cert === 'string' && typeof key === 'string' ? { cert, key } : undefined
    if (token === undefined && clientCertificate === undefined)
      throw this.#error('it printed neither token nor certificate')
    const expires = status['expirationTimestamp']
    const expiresMs = typeof expires === 'string' ? Date.parse(expires) : Number.NaN
    return { token, clientCertificate, expiresMs: Number.isNaN(expiresMs) ? undefined : expiresMs }
  }

  #error(reason: string): AccessError {
    return new AccessError(`Cannot get credentials from ${this.#config.command}: ${reason}`)
  }
}

/** How the program ended. Node's own message has all its arguments, which may be secret. */
function endingOf({ code, signal, killed }: ExecFileException): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `it printed more than ${MOST_PRINTED} bytes`
  if (killed === true) return `it was stopped after ${PLUGIN_TIMEOUT_MS / 1000} s`
  return signal === undefined || signal === null
    ? `it failed with status ${code ?? 'unknown'}`
    : `it ended by ${signal}`
}

/** The plugin's own error message, shortened. */
function shown(stderr: string): string {
  const text = stderr.trim()
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}...`
}

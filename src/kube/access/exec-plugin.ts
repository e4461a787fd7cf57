// Runs a credential plugin, and keeps what it printed until that expires or the API server refuses it.

import { execFile } from 'node:child_process'
import { messageOf } from '../../lib/errors.ts'
import { isJsonObject } from '../encoding/json-reader.ts'
import { AccessError, type ExecPluginConfig } from './cluster-access.ts'

/** A plugin that takes longer hangs. */
const PLUGIN_TIMEOUT_MS = 60_000

/** Credentials are replaced this long before they expire, so that a request under way does not outlive them. */
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

  /** The API server refused the credential: the next one is asked for anew. */
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
      const options = { env: environment, timeout: PLUGIN_TIMEOUT_MS, maxBuffer: 4 * 1024 * 1024 }
      execFile(command, [...args], options, (error, stdout, stderr) => {
        if (error === null) return resolve(stdout)
        const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
        const hint = missing && this.#config.installHint !== '' ? `\n${this.#config.installHint}` : ''
        const reason = missing
          ? 'no such program'
          : `${messageOf(error).trim()}${stderr === '' ? '' : ` ${stderr.trim()}`}`
        reject(this.#error(`${reason}${hint}`))
      }).stdin?.end()
    })
  }

  #parse(output: string): ExecCredential {
    let value: unknown
    try {
      value = JSON.parse(output)
    } catch (error) {
      throw this.#error(`it printed no JSON: ${messageOf(error)}`)
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

// The credentials for a request. Files are read again when they change: tokens and certificates are rotated.

import { Buffer } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import type { Logger } from '../../lib/log.ts'
import type { ClusterAccess, Material } from './cluster-access.ts'
import { ExecPlugin } from './exec-plugin.ts'

/** Certificates for TLS. A new object means new connections. */
export interface TlsMaterial {
  readonly ca: Buffer | undefined
  readonly cert: Buffer | undefined
  readonly key: Buffer | undefined
}

export interface RequestCredentials {
  /** The Authorization header, if any. */
  readonly authorization: string | undefined
  readonly tls: TlsMaterial
}

export class Credentials {
  readonly #access: ClusterAccess
  readonly #log: Logger
  readonly #plugin: ExecPlugin | undefined
  readonly #files = new Map<string, WatchedFile>()
  #tls: TlsMaterial = { ca: undefined, cert: undefined, key: undefined }

  constructor(access: ClusterAccess, log: Logger) {
    this.#access = access
    this.#log = log
    const { authentication } = access
    this.#plugin = authentication.type === 'exec' ? new ExecPlugin(authentication.plugin) : undefined
  }

  async current(): Promise<RequestCredentials> {
    const { authentication, tls } = this.#access
    const executed = await this.#plugin?.credential()
    const own = executed?.clientCertificate
    const cert = own === undefined ? this.#read(tls.clientCertificate?.cert) : Buffer.from(own.cert)
    const key = own === undefined ? this.#read(tls.clientCertificate?.key) : Buffer.from(own.key)
    const ca = this.#read(tls.ca)
    if (!isSame(ca, this.#tls.ca) || !isSame(cert, this.#tls.cert) || !isSame(key, this.#tls.key)) {
      this.#tls = { ca, cert, key }
    }
    switch (authentication.type) {
      case 'anonymous':
        return { authorization: undefined, tls: this.#tls }
      case 'token':
        return { authorization: `Bearer ${authentication.token}`, tls: this.#tls }
      case 'tokenFile': {
        const token = this.#file(authentication.file).toString('utf8').trim()
        return { authorization: `Bearer ${token}`, tls: this.#tls }
      }
      case 'basic': {
        const pair = `${authentication.username}:${authentication.password}`
        return { authorization: `Basic ${Buffer.from(pair).toString('base64')}`, tls: this.#tls }
      }
      case 'exec':
        return { authorization: executed?.token === undefined ? undefined : `Bearer ${executed.token}`, tls: this.#tls }
    }
  }

  /** The API server answered 401. Returns whether a retry may succeed. */
  refused(): boolean {
    this.#plugin?.forget()
    return this.#plugin !== undefined
  }

  #read(material: Material | undefined): Buffer | undefined {
    if (material === undefined) return undefined
    return 'data' in material ? material.data : this.#file(material.file)
  }

  /** The file's content. While a file is replaced it may be missing: then its last content counts. */
  #file(path: string): Buffer {
    const known = this.#files.get(path)
    try {
      const { mtimeMs, ino, size } = statSync(path)
      const version = `${mtimeMs}:${ino}:${size}`
      if (known?.version === version) return known.content
      const content = readFileSync(path)
      this.#files.set(path, { version, content })
      if (known !== undefined) this.#log.v(2)?.info('Credentials file changed', { path })
      return content
    } catch (error) {
      if (known === undefined) throw error
      this.#log.warn('Cannot read credentials file, keeping its last content', { path, err: error })
      return known.content
    }
  }
}

interface WatchedFile {
  readonly version: string
  readonly content: Buffer
}

function isSame(a: Buffer | undefined, b: Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.equals(b))
}

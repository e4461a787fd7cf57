// The sandbox's API, with the rights of its kubeconfig.

import { Agent, request } from 'node:https'

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { token: string } }[]
}

// oxlint-disable-next-line typescript/no-explicit-any -- the API's JSON, of which each test reads what it needs.
export type ApiJson = any

export class ApiAccess {
  readonly #server: URL
  readonly #ca: Buffer
  readonly #token: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor({ clusters, users }: Kubeconfig) {
    const { cluster } = clusters[0]!
    this.#server = new URL(cluster.server)
    this.#ca = Buffer.from(cluster['certificate-authority-data'], 'base64')
    this.#token = users[0]!.user.token
  }

  async get(path: string): Promise<ApiJson> {
    return JSON.parse(await this.text(path))
  }

  text(path: string): Promise<string> {
    return this.#send('GET', path)
  }

  async create(path: string, object: object): Promise<ApiJson> {
    return JSON.parse(await this.#send('POST', path, object))
  }

  /** Replaces an object, or creates it. */
  async put(path: string, object: object): Promise<ApiJson> {
    return JSON.parse(await this.#send('PUT', path, object))
  }

  async delete(path: string): Promise<ApiJson> {
    return JSON.parse(await this.#send('DELETE', path))
  }

  async patch(path: string, change: object): Promise<ApiJson> {
    return JSON.parse(await this.#send('PATCH', path, change))
  }

  #send(method: string, path: string, body?: object): Promise<string> {
    return new Promise((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = { authorization: `Bearer ${this.#token}`, 'content-type': type }
      const sent = request(
        new URL(path, this.#server),
        { method, headers, ca: this.#ca, agent: this.#agent },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (part: string) => (text += part))
          response.on('end', () => {
            if ((response.statusCode ?? 500) < 300) resolve(text)
            else reject(new Error(`${method} ${path}: ${text}`))
          })
        },
      )
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

// A process with a network namespace of its own, in which endpoints listen and connections are measured. It does what its parent
// tells it, one thing at a time.

import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cgroup } from '../support/cgroup.ts'
import { openApi } from './beside-api.ts'
import { Contestant } from './beside-contestant.ts'
import { LocalClient } from './local-client.ts'
import { enterOwnNetwork } from './netns.ts'
import { packetCluster, type Target, targets } from './packets-cluster.ts'

/** What makes services there: rules in nft's language, or a proxy; it may choose at connect(). */
export type Maker =
  | { readonly rules: string }
  | { readonly program: string; readonly mode: string; readonly balancesSockets?: true }

export interface PlaceSettings {
  readonly name: string
  readonly services: number
  readonly withinMs: number
  readonly maker: Maker
}

/** What the parent asks for. */
export type Order =
  | { readonly do: 'open'; readonly settings: PlaceSettings }
  | { readonly do: 'connect' | 'transfer'; readonly ip: string; readonly port: number }
  | { readonly do: 'close' }

/** Nanoseconds, or undefined where it did not succeed. */
export type Answer = { readonly figure?: number | undefined; readonly error?: string }

class Place {
  readonly #settings: PlaceSettings
  readonly client: LocalClient
  #proxy: Contestant | undefined
  #cgroup: Cgroup | undefined
  #api: ChildProcess | undefined

  constructor(settings: PlaceSettings) {
    this.#settings = settings
    enterOwnNetwork()
    const routes = [
      'address add 10.255.255.1/32 dev lo',
      'address add fd00:10:ffff::1/128 dev lo nodad',
      'route add local 10.0.0.0/8 dev lo',
      'route add local fd00:10::/32 dev lo',
      'route add 172.16.0.0/12 dev lo src 10.255.255.1',
      'route add fd00:172::/32 dev lo src fd00:10:ffff::1',
    ]
    execFileSync('ip', ['-batch', '-'], { input: routes.join('\n') })
    this.client = new LocalClient()
  }

  async open(): Promise<void> {
    const { maker } = this.#settings
    if ('rules' in maker) execFileSync('nft', ['-f', '-'], { input: maker.rules })
    else await this.#openProxy(maker)
  }

  async close(): Promise<void> {
    await this.#proxy?.[Symbol.asyncDispose]()
    this.#api?.kill()
    this.#cgroup?.leave()
    this.#cgroup?.[Symbol.dispose]()
  }

  async #openProxy({ program, mode, balancesSockets }: Exclude<Maker, { rules: string }>): Promise<void> {
    const { services, withinMs } = this.#settings
    const flags = ['--cluster-cidr=10.0.0.0/8,fd00:10::/32']
    if (balancesSockets === true) {
      this.#cgroup = new Cgroup('kube-proxy-ts-bench')
      flags.push(`--socket-balancing=${this.#cgroup.folder}`)
    }
    this.#api = fork(new URL(import.meta.url), ['serve', String(services)])
    const [kubeconfig] = (await once(this.#api, 'message')) as [string]
    this.#proxy = new Contestant(program, mode, kubeconfig, flags)
    const endMs = Date.now() + withinMs
    for (const target of targets(services)) {
      while (!(await this.#answers(target))) {
        if (this.#proxy.ended !== undefined) throw new Error(this.#proxy.ended)
        if (Date.now() > endMs) throw new Error(`${target.kind} not live within ${withinMs / 1000} s`)
      }
    }
    if (this.#cgroup === undefined) return
    while (!this.#proxy.said('Sockets choose the endpoints')) await sleep(10)
    // The maps are filled after that.
    await sleep(1000)
    this.#cgroup.enter()
  }

  async #answers({ ip, port, family }: Target): Promise<boolean> {
    const isConnected = await new Promise<boolean>((resolve) => {
      const client = net.connect({ host: ip, port })
      const timer = setTimeout(() => end(false), 50)
      const end = (answer: boolean) => {
        clearTimeout(timer)
        client.destroy()
        resolve(answer)
      }
      client.on('connect', () => end(true))
      client.on('error', () => setTimeout(() => end(false), 10))
    })
    this.client.drop(family)
    return isConnected
  }
}

/** The API server of one namespace. */
async function serve(services: number): Promise<void> {
  const api = await openApi(undefined)
  await api.load(packetCluster(services))
  process.send!(api.kubeconfig)
  process.on('disconnect', () => process.exit())
}

let place: Place | undefined

async function obey(order: Order): Promise<number | undefined> {
  switch (order.do) {
    case 'open':
      place = new Place(order.settings)
      await place.open()
      return undefined
    case 'close':
      await place?.close()
      return undefined
    default:
      return place!.client[order.do](order.ip, order.port)
  }
}

const [role, services] = process.argv.slice(2)
if (role === 'serve') {
  await serve(Number(services))
} else if (role === 'measure') {
  process.on('message', (order: Order) => {
    const answer = (what: Answer) => process.send!(what)
    obey(order).then(
      (figure) => answer({ figure }),
      (error: unknown) => answer({ error: String(error) }),
    )
  })
  process.on('disconnect', () => process.exit())
}

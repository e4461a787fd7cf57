import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect, test } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import { ServiceHealth, type RefusedHealthPort, type ServiceHealthOptions } from './service-health.ts'

const hasIpv6 = networkInterfaces().lo?.some(({ address }) => address === '::1') ?? false

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

function aServer(options: Partial<ServiceHealthOptions> = {}) {
  const clock = new ManualClock()
  const refused: RefusedHealthPort[] = []
  const state = { healthy: true }
  const health = new ServiceHealth({
    family: 4,
    addresses: ['127.0.0.1'],
    proxyHealthy: () => state.healthy,
    onRefused: (port) => refused.push(port),
    clock,
    log: silentLogger,
    ...options,
  })
  open.push(health)
  return { health, clock, refused, state }
}

let nextPort = 12_000 + (process.pid % 8000)

/** Ports that are free, below those that the kernel gives to the connections of other tests. */
async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    const port = nextPort++
    const server = await occupy(port).catch(() => undefined)
    if (server === undefined) continue
    await new Promise((resolve) => server.close(resolve))
    ports.push(port)
  }
  return ports
}

function occupy(port: number): Promise<Server> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

/** What the port answers, as soon as a server listens. */
async function ask(port: number, init: RequestInit = {}, path = '/healthz', host = '127.0.0.1') {
  let answer: Awaited<ReturnType<typeof askOnce>>
  await eventually(`${host}:${port} answers`, async () => {
    answer = await askOnce(port, init, path, host)
    return answer === undefined ? 'refused' : undefined
  })
  return answer
}

/** What the port answers now: undefined when no server listens. */
async function askOnce(port: number, init: RequestInit = {}, path = '/healthz', host = '127.0.0.1') {
  try {
    const response = await fetch(`http://${host}:${port}${path}`, { ...init, headers: { connection: 'close' } })
    const body = await response.text()
    return { status: response.status, body, headers: response.headers }
  } catch {
    return undefined
  }
}

describe('ServiceHealth', () => {
  test('answers in kube-proxy’s words', async () => {
    const [port] = await freePorts(1)
    const { health } = aServer()
    health.syncServices(new Map([['shop/web', port!]]))
    health.syncEndpoints(new Map([['shop/web', 1]]))
    const answer = await ask(port!)
    expect(answer!.status).toBe(200)
    expect(answer!.body).toBe(
      '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 1,\n\t"serviceProxyHealthy": true\n}',
    )
    expect(answer!.headers.get('content-type')).toBe('application/json')
    expect(answer!.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer!.headers.get('x-load-balancing-endpoint-weight')).toBe('1')
    expect((await ask(port!, { method: 'OPTIONS' }, '/any/path'))!.status).toBe(200)
  })

  test('is 200 only with local endpoints and a healthy proxy; the weight is the number of endpoints either way', async () => {
    const [port] = await freePorts(1)
    const { health, state } = aServer()
    const answers = async () => {
      const { status, body, headers } = (await ask(port!))!
      return [
        status,
        (JSON.parse(body) as { serviceProxyHealthy: boolean }).serviceProxyHealthy,
        headers.get('x-load-balancing-endpoint-weight'),
      ]
    }
    health.syncServices(new Map([['shop/web', port!]]))
    expect(await answers()).toEqual([503, true, '0'])
    health.syncEndpoints(new Map([['shop/web', 3]]))
    expect(await answers()).toEqual([200, true, '3'])
    state.healthy = false
    expect(await answers()).toEqual([503, false, '3'])
    state.healthy = true
    health.syncEndpoints(new Map([['other/service', 3]]))
    expect(await answers()).toEqual([503, true, '0'])
  })

  test('syncServices() closes ports at once, opens new ones and leaves the others alone', async () => {
    const [a, b, c] = await freePorts(3)
    const { health } = aServer()
    health.syncServices(new Map([['n/a', a!], ['n/b', b!]])) // oxfmt-ignore
    health.syncEndpoints(new Map([['n/a', 1], ['n/b', 1]])) // oxfmt-ignore
    expect([(await ask(a!))?.status, (await ask(b!))?.status]).toEqual([200, 200])
    health.syncServices(new Map([['n/b', b!], ['n/c', c!]])) // oxfmt-ignore
    expect([(await ask(b!))?.status, (await ask(c!))?.status]).toEqual([200, 503])
    expect(await askOnce(a!)).toBeUndefined()
  })

  test('syncServices() moves a service to its new port, and a port to its new service', async () => {
    const [a, b] = await freePorts(2)
    const { health, clock } = aServer()
    health.syncServices(new Map([['n/a', a!], ['n/b', b!]])) // oxfmt-ignore
    expect((await ask(a!))?.body).toContain('"name": "a"')
    health.syncServices(new Map([['n/a', b!], ['n/b', a!]])) // oxfmt-ignore
    await eventually('the ports are swapped', async () => {
      const bodies = [(await askOnce(a!))?.body, (await askOnce(b!))?.body]
      if (bodies[0]?.includes('"name": "b"') && bodies[1]?.includes('"name": "a"')) return undefined
      // A process that another test is just starting has this one's ports until it runs its program: they are tried again.
      await clock.advance(5000)
      return bodies.join()
    })
  })

  test('a port that is taken is reported once and opened when it is free', async () => {
    const taken = await occupy(0)
    open.push(taken)
    const { port } = taken.address() as AddressInfo
    const { health, clock, refused } = aServer()
    const services = new Map([['shop/web', port]])
    health.syncServices(services)
    await eventually('the port is refused', () => (refused.length === 0 ? 'not yet' : undefined))
    health.syncServices(services)
    await clock.advance(5000)
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(refused.map(({ service, port, error }) => [service, port, (error as NodeJS.ErrnoException).code])).toEqual([
      ['shop/web', port, 'EADDRINUSE'],
    ])
    await new Promise((resolve) => taken.close(resolve))
    await clock.advance(5000)
    expect((await ask(port))?.status).toBe(503)
  })

  test('listens on the given addresses only, and follows them', async () => {
    const [port] = await freePorts(1)
    const { health } = aServer({ addresses: ['127.0.0.2'] })
    health.syncServices(new Map([['shop/web', port!]]))
    expect((await ask(port!, {}, '/', '127.0.0.2'))?.status).toBe(503)
    expect(await askOnce(port!)).toBeUndefined()
    health.setAddresses(['127.0.0.2', '127.0.0.3'])
    expect((await ask(port!, {}, '/', '127.0.0.3'))?.status).toBe(503)
    expect(health.boundAddresses('shop/web')).toEqual([`127.0.0.2:${port}`, `127.0.0.3:${port}`])
    health.setAddresses('all')
    expect((await ask(port!))?.status).toBe(503)
    expect(health.boundAddresses('shop/web')).toEqual([`0.0.0.0:${port}`])
  })

  test.skipIf(!hasIpv6)('both families serve the same port side by side', async () => {
    const [port] = await freePorts(1)
    const ipv4 = aServer({ addresses: 'all' })
    const ipv6 = aServer({ family: 6, addresses: 'all' })
    for (const { health } of [ipv4, ipv6]) health.syncServices(new Map([['shop/web', port!]]))
    ipv6.health.syncEndpoints(new Map([['shop/web', 2]]))
    expect((await ask(port!))?.status).toBe(503)
    expect((await ask(port!, {}, '/', '[::1]'))?.status).toBe(200)
    expect([...ipv4.refused, ...ipv6.refused]).toEqual([])
  })
})

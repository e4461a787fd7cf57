// The server of the page over real HTTP: who is let in, and what a page gets.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually, staysQuiet } from '../../test/support/eventually.ts'
import { UiClient } from '../../test/sandbox/support/ui-client.ts'
import type { Action, Snapshot } from './protocol.ts'
import { UiServer } from './server.ts'
import type { UiListener, UiSource } from './source.ts'

const hostile = '</script><script>alert(1)</script><!--<script>'

const snapshot: Snapshot = {
  kind: 'sandbox',
  name: hostile,
  can: { act: true, send: 'nowhere', modes: [] },
  terminal: { program: 'kube-proxy', sandbox: null, kubeconfig: null },
  apiServer: { url: 'https://x', state: 'there' },
  nodes: [],
  pods: [],
  services: [],
  deployments: [],
  outside: null,
  leftOut: { services: 0, pods: 0, backends: 0 },
  load: null,
}

class Source implements UiSource {
  listener: UiListener | undefined
  name = hostile
  made = 0
  asked = 0
  readonly done: Action[] = []

  async snapshot(): Promise<Snapshot> {
    this.made++
    return { ...snapshot, name: this.name }
  }
  begin(listener: UiListener): void {
    this.listener = listener
  }
  end(): void {
    this.listener = undefined
  }
  async traffic() {
    this.asked++
    return { nodes: [], outcomes: [] }
  }
  async service(): Promise<never> {
    throw new Error('There is no such Service')
  }
  async doctor(): Promise<never> {
    throw new Error('There is no doctor')
  }
  async explain(): Promise<never> {
    throw new Error('There is no such packet')
  }
  async act(action: Action) {
    this.done.push(action)
    return { ok: true, did: 'it', command: 'x', begunMs: 0 } as const
  }
  close(): void {
    this.end()
  }
}

let source: Source
let server: UiServer
let client: UiClient
let url: string
let folder: string
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ui-'))
  writeFileSync(join(folder, 'page.js'), 'let page')
  writeFileSync(join(folder, 'page.css'), 'body {}')
  source = new Source()
  server = new UiServer({ source, assets: `${folder}/` })
  url = await server.listen({ host: '127.0.0.1', port: 0 })
  client = new UiClient(url)
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

/** Without the cookie, and with any headers. */
function ask(path: string, options: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
  return new Promise<{ status: number; headers: IncomingHttpHeaders; body: string }>((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options
    const sent = request(client.origin + path, { method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const token = () => new URL(url).searchParams.get('token')!

test('without the token there is nothing, whatever is asked for', async () => {
  for (const path of ['/', '/page.js', '/page.css', '/api/events', '/api/service?namespace=a&name=b', '/nonsense']) {
    const { status, body, headers } = await ask(path)
    expect([path, status, JSON.parse(body)]).toEqual([path, 401, { error: expect.stringContaining('token') as string }])
    expect(headers['set-cookie']).toBeUndefined()
  }
  const wrong = `${token().slice(0, -1)}${token().endsWith('x') ? 'y' : 'x'}`
  expect((await ask(`/?token=${wrong}`)).status).toBe(401)
  expect((await ask(`/?token=${token()}x`)).status).toBe(401)
  expect((await ask('/?token=')).status).toBe(401)
  const posted = { method: 'POST', headers: { origin: client.origin, 'content-type': 'application/json' } }
  expect((await ask('/api/act', { ...posted, body: '{"action":"load-end"}' })).status).toBe(401)
  expect(source.done).toEqual([])
})

test('the token opens the page and sets a cookie that scripts and other sites do not get', async () => {
  const { status, headers } = await ask(`/?token=${token()}`)
  expect(status).toBe(200)
  expect(headers['set-cookie']).toEqual([
    expect.stringMatching(/^kube-proxy-ui-\w+=\S+; HttpOnly; SameSite=Strict; Path=\/$/),
  ])
  const cookie = headers['set-cookie']![0]!.split(';')[0]!
  expect(await ask('/page.js', { headers: { cookie } })).toMatchObject({ status: 200, body: 'let page' })
  expect((await ask('/page.css', { headers: { cookie } })).headers['content-type']).toBe('text/css; charset=utf-8')
  expect((await ask('/../server.ts', { headers: { cookie } })).status).toBe(404)
})

test('every answer keeps the browser from loading, framing, guessing and storing', async () => {
  for (const path of ['/', `/?token=${token()}`]) {
    const { headers } = await ask(path)
    const policy = headers['content-security-policy']
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
    ])
      expect(policy).toContain(part)
    expect(policy).not.toContain('unsafe')
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
  }
})

test('a name that leads here is not enough: the Host must be ours', async () => {
  for (const host of ['evil.example', `evil.example:${new URL(url).port}`, '127.0.0.1:1']) {
    expect((await ask(`/?token=${token()}`, { headers: { host } })).status).toBe(403)
  }
  const local = `localhost:${new URL(url).port}`
  expect((await ask(`/?token=${token()}`, { headers: { host: local } })).status).toBe(200)
})

test('a page of another origin can do nothing, even with the cookie', async () => {
  const cookie = (await ask(`/?token=${token()}`)).headers['set-cookie']![0]!.split(';')[0]!
  const body = '{"action":"load-end"}'
  const post = (headers: Record<string, string>) =>
    ask('/api/act', { method: 'POST', body, headers: { cookie, 'content-type': 'application/json', ...headers } })
  expect((await post({ origin: 'http://evil.example' })).status).toBe(403)
  expect((await post({ origin: 'null' })).status).toBe(403)
  expect((await post({})).status).toBe(403)
  expect((await post({ origin: client.origin, 'content-type': 'text/plain' })).status).toBe(415)
  expect((await ask('/api/events', { headers: { cookie, origin: 'http://evil.example' } })).status).toBe(403)
  expect((await ask('/api/events', { headers: { cookie, 'sec-fetch-site': 'cross-site' } })).status).toBe(403)
  expect(source.done).toEqual([])
  expect((await post({ origin: client.origin })).status).toBe(200)
  expect(source.done).toEqual([{ action: 'load-end' }])
})

test('what an object contains cannot break out of the page', async () => {
  const { body } = await ask(`/?token=${token()}`)
  expect(body.match(/<script/g)).toHaveLength(2)
  expect(body).not.toContain('alert(1)</script>')
  expect((await client.open()).name).toBe(hostile)
})

test('a question that is too large, or makes no sense, is refused with a reason', async () => {
  await client.open()
  const send = (path: string, body: string) => client.send(client.origin + path, { body })
  expect((await send('/api/act', JSON.stringify({ action: 'x'.repeat(100_000) }))).status).toBe(413)
  const chunked = await client.send(`${client.origin}/api/act`, {
    body: 'x'.repeat(50_000),
    headers: { 'transfer-encoding': 'chunked' },
  })
  expect(chunked.status).toBe(413)
  for (const body of [
    '',
    '{',
    'null',
    '[]',
    '{"action":"rm"}',
    '{"action":"scale","namespace":"default","deployment":"x","replicas":1e9}',
  ])
    expect([body, (await send('/api/act', body)).status]).toEqual([body, 400])
  expect(JSON.parse((await send('/api/act', '{"action":"flush","node":"$(reboot)"}')).body)).toEqual({
    error: 'Cannot use node "$(reboot)": must be a name of an object',
  })
  expect((await client.send(`${client.origin}/api/service?namespace=../x&name=y`)).status).toBe(400)
  expect(await client.send(`${client.origin}/api/service?namespace=x&name=y`)).toMatchObject({
    status: 500,
    body: '{"error":"There is no such Service"}',
  })
  expect(source.done).toEqual([])
})

test('the source is asked only while a page is open', async () => {
  await client.open()
  expect(source.listener).toBeUndefined()
  {
    using first = client.openPage()
    await first.until('the first has a snapshot', () => undefined)
    using second = client.openPage()
    await second.until('the second has a snapshot', () => undefined)
    expect([source.listener === undefined, server.pages]).toEqual([false, 2])
    await eventually('traffic has come', () => (first.received.traffic.length > 0 ? undefined : 'not yet'))
  }
  await eventually('the last has gone', () => (source.listener === undefined ? undefined : 'it is listened to'))
  const { asked } = source
  await staysQuiet('nothing is asked', () => (source.asked === asked ? undefined : 'it is'), { forMs: 1200 })
})

test('changes that come together are reported together, and what did not change is not told', async () => {
  await client.open()
  using page = client.openPage()
  await page.until('it has a snapshot', () => undefined)
  const before = source.made
  source.name = 'another'
  for (let i = 0; i < 100; i++) source.listener!.changed()
  await page.until('the change has come', ({ name }) => (name === 'another' ? undefined : name))
  expect(source.made - before).toBeLessThan(4)
  const count = page.received.update.length
  for (let i = 0; i < 3; i++) {
    source.listener!.changed()
    await eventually('it was looked at', () => (source.made > before + i + 1 ? undefined : 'not yet'))
  }
  expect(page.received.update).toHaveLength(count)
})

test('a page gets everything once and then what is another one; one that comes later has the same', async () => {
  await client.open()
  using first = client.openPage()
  await first.until('it has a snapshot', () => undefined)
  for (const name of ['another', 'a third']) {
    source.name = name
    source.listener!.changed()
    await first.until('the change has come', (snapshot) => (snapshot.name === name ? undefined : snapshot.name))
  }
  expect(first.received.snapshot).toHaveLength(1)
  expect(first.received.update.at(-1)!).toEqual({ fields: { name: { put: 'a third' } } })
  source.name = 'a fourth'
  using second = client.openPage()
  await second.until('the second has a snapshot', () => undefined)
  // It was looked at for the second page; the first gets what was seen.
  await first.until('the first has it, too', ({ name }) => (name === 'a fourth' ? undefined : name))
  expect(second.last).toEqual(first.last)
})

test('a page that comes later gets the changes before it, up to a limit, and each once', async () => {
  await client.open()
  using first = client.openPage()
  await first.until('it has a snapshot', () => undefined)
  const change = (doneMs: number) => ({ node: 'n', family: 4, doneMs, beganMs: doneMs - 1 }) as never
  for (let i = 0; i < 250; i++) source.listener!.synced(change(i))
  source.listener!.synced(change(249))
  await eventually('all have come', () => (first.received.change.length === 250 ? undefined : 'not yet'))
  using second = client.openPage()
  await eventually('the newest have come', () => (second.received.change.length === 200 ? undefined : 'not yet'))
  expect(second.received.change[0]!.id).toBe(51)
})

test('so many pages and no more; they get the end', async () => {
  await client.open()
  const all = Array.from({ length: 16 }, () => client.openPage())
  for (const page of all) await page.until('it has a snapshot', () => undefined)
  expect((await client.send(`${client.origin}/api/events`)).status).toBe(503)
  await server.close('Good night')
  for (const page of all)
    await eventually('the end has come', () => (page.received.end[0]?.reason === 'Good night' ? undefined : 'not yet'))
})

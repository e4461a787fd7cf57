import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { silentLogger, type Logger } from '../../lib/log.ts'
import { bindSocket, isAlive } from './bind-socket.ts'
import { ask, ControlClient, NoProxyError, RefusedQuestionError } from './client.ts'
import { askPath, defaultSocket, listenPath } from './path.ts'
import { allowArguments, argument, type Question } from './questions.ts'
import { ControlServer, type ControlOptions } from './server.ts'

let folder: string
let socket: string
const open: { close(): unknown }[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'control-'))
  socket = join(folder, 'proxy.sock')
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
  rmSync(folder, { recursive: true })
})

const signals: AbortSignal[] = []
const questions: readonly Question[] = [
  {
    name: 'echo',
    what: 'says what it was asked',
    answer: (query) => {
      allowArguments(query, 'say')
      return { said: argument(query, 'say') }
    },
  },
  { name: 'many', what: 'a large answer', answer: () => ({ numbers: numbers(200_000) }) },
  { name: 'broken', what: 'fails', answer: () => Promise.reject(new Error('out of order')) },
  { name: 'lease', what: 'until the client goes', answer: (_, client) => void signals.push(client.signal) },
]

function* numbers(count: number): Generator<number> {
  for (let i = 0; i < count; i++) yield i
}

function serve(options: Partial<ControlOptions> = {}): ControlServer {
  const server = new ControlServer({ path: socket, questions, clock: systemClock, log: silentLogger, ...options })
  open.push(server)
  return server
}

describe('questions', () => {
  test('are answered in JSON, with their arguments', async () => {
    await serve().ready
    await expect(ask('echo', { socket, query: { say: 'viola & co', not: undefined } })).resolves.toEqual({
      said: 'viola & co',
    })
  })

  test('that are large come whole', async () => {
    await serve().ready
    const { numbers: all } = await ask<{ numbers: number[] }>('many', { socket })
    expect([all.length, all.at(-1)]).toEqual([200_000, 199_999])
  })

  test('that do not exist, have odd arguments or fail are refused with a reason', async () => {
    await serve().ready
    await expect(ask('nonsense', { socket })).rejects.toThrow(/questions are \/v1\/echo, /)
    await expect(ask('echo', { socket, query: { sya: 'x' } })).rejects.toThrow(/"sya": must be one of say/)
    await expect(ask('broken', { socket })).rejects.toThrow(new RefusedQuestionError('out of order'))
  })

  test('a connection stays with its client, and its end is signalled', async () => {
    await serve().ready
    const client = new ControlClient(socket)
    await client.ask('lease')
    await client.ask('lease')
    const [first, second] = signals.splice(0)
    expect(first).toBe(second)
    expect(first!.aborted).toBe(false)
    client.close()
    await eventually('its end is signalled', () => (first!.aborted ? undefined : 'not yet'))
  })
})

describe('the socket', () => {
  test('is for its owner alone, and goes with the server', async () => {
    const server = serve({ path: join(folder, 'new', 'proxy.sock') })
    await server.ready
    expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder, 'new', 'proxy.sock')).mode & 0o777).toBe(0o600)
    await server.close()
    expect(existsSync(join(folder, 'new', 'proxy.sock'))).toBe(false)
  })

  test('of a process that was killed is replaced', async () => {
    const code = `require('net').createServer().listen(${JSON.stringify(socket)}, () => console.log('up'))`
    const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise((resolve) => child.stdout.once('data', resolve))
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('exit', resolve))
    expect(await isAlive(socket)).toBe(false)
    const clock = new ManualClock()
    const server = serve({ clock })
    await server.ready
    // A socket that is only just there may belong to a process that is about to listen: that takes a second look.
    await eventually('it is replaced', async () => {
      await clock.advance(5000)
      return (await isAlive(socket)) ? undefined : 'not yet'
    })
    await expect(ask('echo', { socket })).resolves.toEqual({})
  })

  test('of a process that lives stays that one’s, until it goes', async () => {
    const first = serve()
    await first.ready
    const warnings: unknown[] = []
    const log: Logger = { ...silentLogger, warn: (...all) => void warnings.push(all) }
    const clock = new ManualClock()
    const second = serve({ clock, log, questions: [] })
    await second.ready
    expect(warnings).toEqual([
      ['Cannot be asked over the control socket', { path: socket, reason: 'another process listens there' }],
    ])
    await expect(ask('echo', { socket })).resolves.toEqual({})
    await first.close()
    await eventually('the second takes it', async () => {
      await clock.advance(5000)
      return (await isAlive(socket)) ? undefined : 'not yet'
    })
    await expect(ask('echo', { socket })).rejects.toThrow(/Cannot answer/)
    expect(warnings).toHaveLength(1)
  })

  test('is not made where others could put theirs, nor over a file, nor with a path that is too long', async () => {
    const server = createServer()
    chmodSync(folder, 0o777)
    await expect(bindSocket(server, socket)).rejects.toThrow(/others may write to the folder/)
    chmodSync(folder, 0o700)
    writeFileSync(socket, 'a file')
    utimesSync(socket, 0, 0)
    await expect(bindSocket(server, socket)).rejects.toThrow(/not a socket/)
    const deep = join(folder, 'x'.repeat(100))
    mkdirSync(deep)
    await expect(bindSocket(server, join(deep, 'proxy.sock'))).rejects.toThrow(/longer than 107 bytes/)
  })
})

test('asking where there is no proxy fails with the reason', async () => {
  await expect(ask('echo', { socket })).rejects.toThrow(NoProxyError)
  await expect(ask('echo', { socket })).rejects.toThrow(/no proxy runs in this network namespace/)
})

test('the path goes by the network namespace, the flag and the environment', () => {
  expect(defaultSocket()).toMatch(/^\/run\/kube-proxy-ts\/net-\d+\.sock$/)
  expect([listenPath('none'), listenPath('/x'), listenPath('')]).toEqual([undefined, '/x', defaultSocket()])
  const env = { KUBE_PROXY_CONTROL_SOCKET: '/env' }
  expect([askPath('/flag', env), askPath('', env), askPath('', {})]).toEqual(['/flag', '/env', defaultSocket()])
})

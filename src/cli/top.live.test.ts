// `kube-proxy top` in a real terminal: script(1) gives it one, stty(1) changes its size.

import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import type { TrafficAnswer, TrafficRow } from '../serve/control/traffic.ts'
import { ControlServer } from '../serve/control/server.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLogger } from '../lib/log.ts'
import { NO_TRAFFIC } from '../traffic/traffic-counts.ts'

const program = join(import.meta.dirname, '../../bin/kube-proxy')
const ENTER = '\u001b[?1049h'
const LEAVE = '\u001b[?1049l'

let folder: string
let socket: string
let server: ControlServer
let asked: number

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'top-'))
  socket = join(folder, 'proxy.sock')
  asked = 0
  const traffic = { name: 'traffic', what: 'counts', answer: () => answer(++asked) }
  server = new ControlServer({ path: socket, questions: [traffic], clock: systemClock, log: silentLogger })
  await server.ready
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

const counts = { sentPackets: 0, receivedPackets: 0, receivedBytes: 0, refused: 0, isEjected: false }

/** `few` has more connections, `fat` has more bytes, whenever it is asked. */
function answer(nth: number): TrafficAnswer {
  const row = (service: string, begun: number, sentBytes: number): TrafficRow => ({
    ...counts,
    service,
    frontend: 'tcp 10.0.0.1:80',
    backend: '10.1.0.1:8080',
    begun: begun * nth,
    sentBytes: sentBytes * nth,
  })
  return {
    nowMs: nth * 1000,
    sinceMs: 0,
    mode: 'nftables',
    nodeName: 'node-1',
    rows: [row('default/fat', 1, 5_000_000), row('default/few', 70, 100)],
    other: NO_TRAFFIC,
  }
}

class Terminal {
  readonly #child: ChildProcessWithoutNullStreams
  #output = ''
  readonly ended: Promise<number | null>

  constructor(...flags: readonly string[]) {
    const command = `tty; stty cols 100 rows 20; ${program} top --control-socket=${socket} ${flags.join(' ')}; echo "STATUS $?"; stty -a`
    // A process group of its own: a signal to it goes to all of them, as from a terminal that closes.
    this.#child = spawn('script', ['-qfec', command, '/dev/null'], { detached: true })
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    // Not 'exit', after which there may be output that was not read yet.
    this.ended = new Promise((resolve) => this.#child.once('close', resolve))
  }

  type(keys: string): void {
    this.#child.stdin.write(keys)
  }

  get output(): string {
    return this.#output
  }

  /** The last picture that was drawn whole. */
  get screen(): string {
    const [, ...drawn] = this.#output.split('\u001b[H')
    return (drawn.filter((each) => each.includes('\u001b[J')).at(-1) ?? '').replaceAll('\u001b[K', '')
  }

  sees(what: string, isThere: (screen: string) => boolean): Promise<void> {
    return eventually(what, () => (isThere(this.screen) ? undefined : JSON.stringify(this.screen)))
  }

  prints(what: string, pattern: RegExp): Promise<void> {
    return eventually(what, () => (pattern.test(this.#output) ? undefined : JSON.stringify(this.#output.slice(-500))))
  }

  /** Below script and the shell that it runs. */
  topPid(): number {
    const children = (pid: number) =>
      execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
        .trim()
        .split(/\s+/)
        .map(Number)
    const [shell = 0] = children(this.#child.pid!)
    return children(shell)[0]!
  }

  resize(columns: number, rows: number): void {
    const tty = /\/dev\/pts\/\d+/.exec(this.#output)?.[0] ?? ''
    execFileSync('stty', ['-F', tty, 'cols', String(columns), 'rows', String(rows)])
  }
}

function lines(screen: string): string[] {
  return screen.replace('\u001b[J', '').split('\r\n')
}

/** As it was before: the usual screen, a cursor, and a terminal that echoes and waits for the end of a line. */
async function expectRestored(terminal: Terminal, status: number): Promise<void> {
  await terminal.ended
  const { output } = terminal
  expect(output.lastIndexOf(LEAVE)).toBeGreaterThan(output.lastIndexOf(ENTER))
  expect(output).toContain('\u001b[?25h')
  expect(output).toContain(`STATUS ${status}`)
  expect(output).toMatch(/[^-]icanon/)
  expect(output).toMatch(/[^-]echo /)
}

test('keys sort, change the view and filter; q ends it, and the terminal is as it was', async () => {
  const terminal = new Terminal()
  await terminal.sees('the one with most bytes is first', (screen) => /default\/fat[^]*default\/few/.test(screen))
  expect(terminal.output).toContain(ENTER)
  terminal.type('sss')
  await terminal.sees('sorted by connections', (screen) =>
    /sort: connections[^]*default\/few[^]*default\/fat/.test(screen),
  )
  terminal.type('vv')
  await terminal.sees('backends', (screen) => screen.includes('-> 10.1.0.1:8080'))
  terminal.type('/fat')
  await terminal.sees(
    'filtered while it is typed',
    (screen) => screen.includes('filter: fat_') && !screen.includes('few'),
  )
  terminal.type('\r')
  await terminal.sees('the filter stays', (screen) => screen.includes('/ filter: fat ') && !screen.includes('few'))
  terminal.type('\u001b[A')
  terminal.type('q')
  await expectRestored(terminal, 0)
})

test('a terminal that changes its size gets a picture that fits', async () => {
  const terminal = new Terminal('--view=backends')
  await terminal.sees('a picture', (screen) => screen.includes('default/fat'))
  terminal.resize(60, 5)
  await terminal.sees('a smaller one', (screen) => {
    const drawn = lines(screen)
    return drawn.length <= 5 && drawn.every((line) => line.length <= 60) && !screen.includes('default/few')
  })
  terminal.resize(140, 30)
  await terminal.sees('a larger one', (screen) => lines(screen).some((line) => line.length > 100))
  terminal.type('\u0003')
  await expectRestored(terminal, 0)
})

test.each([
  ['SIGTERM', 0],
  ['SIGINT', 0],
  ['SIGHUP', 0],
] as const)('%s restores the terminal', async (signal, status) => {
  const terminal = new Terminal()
  await terminal.sees('a picture', (screen) => screen.includes('default/fat'))
  process.kill(terminal.topPid(), signal)
  await expectRestored(terminal, status)
})

test('a proxy that ends is reported below the restored screen', async () => {
  const terminal = new Terminal()
  await terminal.sees('a picture', (screen) => screen.includes('default/fat'))
  await server.close()
  await expectRestored(terminal, 1)
  expect(terminal.output.slice(terminal.output.lastIndexOf(LEAVE))).toMatch(/kube-proxy: Cannot/)
})

test('an error of its own restores the terminal, too', async () => {
  const terminal = new Terminal()
  await terminal.sees('a picture', (screen) => screen.includes('default/fat'))
  // A picture of nothing that can be drawn.
  const broken = { ...answer(1), rows: null } as unknown as TrafficAnswer
  await server.close()
  const traffic = { name: 'traffic', what: 'counts', answer: () => broken }
  server = new ControlServer({ path: socket, questions: [traffic], clock: systemClock, log: silentLogger })
  await expectRestored(terminal, 1)
})

test('piped, it prints plain lines, table after table', async () => {
  const printed = await new Promise<string>((resolve) => {
    const child = spawn(program, ['top', `--control-socket=${socket}`, '--count=2'])
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    child.once('close', () => resolve(text))
  })
  expect(printed).not.toContain('\u001b')
  expect(printed.match(/^services +conn\/s/gm)).toHaveLength(2)
  expect(printed).toMatch(/^default\/fat +1 +0 +5\.00M +0$/m)
})

// The threads of the data path, as the built program runs them.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DataPlane, type DataPlaneOptions } from '../../src/data-path/data-plane.ts'
import { WorkerLink } from '../../src/data-path/worker-link.ts'
import { openListener } from '../../src/data-path/sockets.ts'
import { SourcePorts } from '../../src/data-path/source-ports.ts'
import { Workers } from '../../src/data-path/workers.ts'
import { mustCall, tryCall } from '../../src/system/libc.ts'
import { anEchoBackend } from '../support/backends.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'

const ephemeral = { first: 40_000, last: 50_000 }

function aPlane(options: Partial<DataPlaneOptions> = {}): DataPlane {
  const fail = (error: Error) => expect.fail(error.message)
  return new DataPlane({
    threads: 2,
    udpIdleMs: 250,
    ephemeral,
    reserved: new Set(),
    onWarning: (message) => expect.fail(message),
    onFailed: fail,
    ...options,
  })
}

function countFds(): number {
  return readdirSync('/proc/self/fd').length
}

test('a thread that dies is reported, once', async () => {
  const failures: string[] = []
  const wakeFd = mustCall('create an eventfd', 'eventfd', 0, 0o4000)
  const workers = Workers.createMemory([wakeFd])
  const settings = { udpIdleMs: 250, ephemeral, sourcePorts: SourcePorts.createMemory(), workers }
  const link = new WorkerLink({
    index: 0,
    settings,
    onWarning: () => {},
    onFailed: (error) => failures.push(error.message),
  })
  await link.done()
  // A pool that it has never heard of.
  link.post({ kind: 'listen', listener: { id: 1, pool: 99, fd: 0, seenAs: 'node', address: '127.0.0.1' } })
  await eventually('it is reported', () => (failures.length > 0 ? undefined : 'nothing'))
  await staysQuiet('it is reported once', () => failures[1], { forMs: 100 })
  expect(failures[0]).toMatch(/undefined/)
  tryCall('close', wakeFd)
})

test('settle() has clients that came before counted, and stop() closes all that was opened', async () => {
  const before = countFds()
  const plane = aPlane()
  {
    await using backend = await anEchoBackend('a')
    const opened = openListener({ family: 4, protocol: 'TCP', address: '127.0.0.1', port: 0 })!
    const pool = plane.open({ family: 4, protocol: 'TCP', backends: [backend], affinitySeconds: undefined })
    const listener = pool.listen({ fd: opened.fd, seenAs: 'node', address: '127.0.0.1' })
    const sockets = Array.from({ length: 50 }, () => connect(opened.port, '127.0.0.1'))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    // They may still be in the kernel's queue.
    pool.shut(listener)
    await plane.settle()
    expect(plane.active).toBe(50)
    expect(plane.isIdle).toBe(false)
    for (const socket of sockets) socket.end()
    await Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
    await eventually('all are over', () => (plane.isIdle ? undefined : `${plane.active}`))
    pool.close()
  }
  await plane.stop()
  await eventually('nothing is left open', () => (countFds() <= before ? undefined : `${countFds()} of ${before}`))
})

test('pools that come and go leave nothing behind, but for their connections', async () => {
  const plane = aPlane()
  await using backend = await anEchoBackend('a')
  const contents = { family: 4, protocol: 'TCP', backends: [backend], affinitySeconds: undefined } as const
  const listener = openListener({ family: 4, protocol: 'TCP', address: '127.0.0.1', port: 0 })!
  const used = plane.open(contents)
  used.listen({ fd: listener.fd, seenAs: 'node', address: '127.0.0.1' })
  const socket = connect(listener.port, '127.0.0.1')
  await once(socket, 'data')
  used.close()
  for (let i = 0; i < 1000; i++) {
    plane.open(contents).close()
    if (i % 100 === 0) await plane.settle()
  }
  await eventually('they are forgotten', () => (plane.pools < 300 ? undefined : `${plane.pools}`))
  // The connection of a closed pool counts until it ends.
  expect(plane.active).toBe(1)
  socket.destroy()
  await eventually('it is over', () => (plane.isIdle ? undefined : `${plane.active}`))
  await plane.stop()
  expect(plane.pools).toBe(0)
})

test('clients that wait while many pools are closed are counted', async () => {
  const plane = aPlane()
  await using backend = await anEchoBackend('a')
  const contents = { family: 4, protocol: 'TCP', backends: [backend], affinitySeconds: undefined } as const
  const opened = Array.from({ length: 200 }, () => {
    const listener = openListener({ family: 4, protocol: 'TCP', address: '127.0.0.1', port: 0 })!
    const pool = plane.open(contents)
    pool.listen({ fd: listener.fd, seenAs: 'node', address: '127.0.0.1' })
    return { pool, port: listener.port }
  })
  const sockets = opened.map(({ port }) => connect(port, '127.0.0.1'))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const { pool } of opened) pool.close()
  await plane.settle()
  expect(plane.active).toBe(200)
  for (const socket of sockets) socket.destroy()
  await eventually('all are over', () => (plane.isIdle ? undefined : `${plane.active}`))
  await plane.stop()
})

test('the heap of the thread that starts them stays small while much is made and thrown away', () => {
  // In a process of its own: that of the tests has had its heap grown long ago.
  const program = `async function main() {
    const { collectInTime } = await import('./dist/src/system/give-back.js')
    const { DataPlane } = await import('./dist/src/data-path/data-plane.js')
    // Much of it survives for a while, which is why V8 would have a larger heap.
    const work = () => {
      for (let round = 0; round < 20; round++) Array.from({ length: 60_000 }, (_, i) => ({ i, list: [i] }))
    }
    collectInTime()
    const plane = new DataPlane({
      threads: 2, udpIdleMs: 250, ephemeral: ${JSON.stringify(ephemeral)}, reserved: new Set(),
      onWarning: console.error, onFailed: (error) => { throw error },
    })
    const open = () => plane.open({ family: 4, protocol: 'TCP', backends: [], affinitySeconds: undefined })
    open()
    // As a first sync does, which takes its time and is one turn.
    for (const end = performance.now() + 300; performance.now() < end;) open()
    work()
    await plane.settle()
    work()
    console.log(process.memoryUsage().heapTotal)
    await plane.stop()
  }
  void main()`
  const heapBytes = Number(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' }))
  // 16 to 19 MB; 49 to 64 where V8 is left to itself when the threads have begun.
  expect(heapBytes).toBeGreaterThan(0)
  expect(heapBytes).toBeLessThan(36 << 20)
})

// The program of a data-path thread. It never returns to Node's event loop: it waits in epoll, and is woken through an
// eventfd when there is a command to read.

import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import { boundCall, lastErrno } from '../system/libc.ts'
import { KernelError } from '../lib/errors.ts'
import type { Command, Report } from './pool.ts'
import { READABLE } from './event-loop.ts'
import { readFdLimit } from '../system/fd-limit.ts'
import { SourcePorts } from './source-ports.ts'
import { endOfFds } from './spare-sockets.ts'
import { monotonicMs } from './monotonic.ts'
import { Workers } from './workers.ts'
import { DataPathThread } from './thread.ts'
import type { WorkerSettings } from './worker-link.ts'

/** Long enough to cost nothing. A thread that is to be ended is woken; this is for one whose waker died. */
const LONGEST_WAIT_MS = 1000
/** The same complaint is made once in this time. */
const COMPLAIN_EVERY_MS = 10_000

run(workerData as WorkerSettings)

function run({ index, udpIdleMs, sourcePorts, ephemeral, workers, port, stopped }: WorkerSettings): void {
  const read = boundCall('read')
  const drained = new BigUint64Array(1)
  const stop = new Int32Array(stopped)
  const lastComplaint = new Map<string, number>()
  const thread = new DataPathThread({
    udpIdleMs,
    workers: new Workers(index, workers),
    sourcePorts: new SourcePorts(sourcePorts, ephemeral),
    endFd: endOfFds(readFdLimit()),
    warn: (message) => {
      const nowMs = monotonicMs()
      if (nowMs - (lastComplaint.get(message) ?? -Infinity) < COMPLAIN_EVERY_MS) return
      lastComplaint.set(message, nowMs)
      port.postMessage({ kind: 'warning', message })
    },
  })
  const { loop } = thread
  const wakeFd = workers.wakeFds[index]!
  const isWatched = loop.watch(wakeFd, READABLE, {
    onEvents() {
      read(wakeFd, drained, 8)
      let questions = 0
      for (let received; (received = receiveMessageOnPort(port)) !== undefined;) {
        const command = received.message as Command
        if (command.kind === 'report when done') questions++
        else if (command.kind === 'find affinity') {
          const entry = thread.findAffinity(command.pool, command.client)
          port.postMessage({ kind: 'affinity', id: command.id, entry } satisfies Report)
        } else thread.carryOut(command)
      }
      thread.receiveMessages()
      for (; questions > 0; questions--) port.postMessage({ kind: 'done' })
    },
  })
  if (!isWatched) throw new KernelError('watch for commands', lastErrno())
  while (Atomics.load(stop, 0) === 0) loop.turn(LONGEST_WAIT_MS)
  // Others may still want to wake this thread, and must not write to another file that gets the number next.
  loop.forget(wakeFd)
  thread.dispose()
}

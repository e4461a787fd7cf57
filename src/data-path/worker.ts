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

/** Long enough to cost nothing. Who stops a thread wakes it; this is for the case that the waker died. */
const LONGEST_WAIT_MS = 1000
/** The same warning is reported once in this time. */
const WARN_EVERY_MS = 10_000

run(workerData as WorkerSettings)

function run({ index, udpIdleMs, sourcePorts, ephemeral, workers, port, stopped }: WorkerSettings): void {
  const read = boundCall('read')
  const drained = new BigUint64Array(1)
  const stop = new Int32Array(stopped)
  const lastWarning = new Map<string, number>()
  const thread = new DataPathThread({
    udpIdleMs,
    workers: new Workers(index, workers),
    sourcePorts: new SourcePorts(sourcePorts, ephemeral),
    endFd: endOfFds(readFdLimit()),
    warn: (message) => {
      const nowMs = monotonicMs()
      if (nowMs - (lastWarning.get(message) ?? -Infinity) < WARN_EVERY_MS) return
      lastWarning.set(message, nowMs)
      port.postMessage({ kind: 'warning', message })
    },
  })
  const { loop } = thread
  const wakeFd = workers.wakeFds[index]!
  const isWatched = loop.watch(wakeFd, READABLE, {
    onEvents() {
      read(wakeFd, drained, 8)
      let doneRequests = 0
      for (let received; (received = receiveMessageOnPort(port)) !== undefined;) {
        const command = received.message as Command
        if (command.kind === 'report when done') doneRequests++
        else if (command.kind === 'find affinity') {
          const entry = thread.findAffinity(command.pool, command.client)
          port.postMessage({ kind: 'affinity', id: command.id, entry } satisfies Report)
        } else thread.carryOut(command)
      }
      thread.receiveMessages()
      for (; doneRequests > 0; doneRequests--) port.postMessage({ kind: 'done' })
    },
  })
  if (!isWatched) throw new KernelError('watch for commands', lastErrno())
  while (Atomics.load(stop, 0) === 0) loop.turn(LONGEST_WAIT_MS)
  // wakeFd stays open: others may still write to it.
  loop.unwatch(wakeFd)
  thread.dispose()
}

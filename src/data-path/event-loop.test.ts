import { expect, test } from 'vitest'
import { mustCall, tryCall } from '../system/libc.ts'
import { READABLE, EventLoop } from './event-loop.ts'

const EFD_NONBLOCK = 0o4000
const F_DUPFD = 0
const F_GETFD = 1
/** Numbers that nothing else in this process is given. */
const FAR_AWAY = 5000

/** A file descriptor that can be read from at once: the lowest one that is free far away. */
function aReadyFd(): number {
  const fd = mustCall('create an eventfd', 'eventfd', 1, EFD_NONBLOCK)
  const far = mustCall('duplicate it', 'fcntl', fd, F_DUPFD, FAR_AWAY)
  mustCall('close it', 'close', fd)
  return far
}

function isOpen(fd: number): boolean {
  return tryCall('fcntl', fd, F_GETFD, 0) !== -1
}

test('an event of a file descriptor that another thread closed does not reach the next one with its number', () => {
  const loop = new EventLoop()
  const events: string[] = []
  const fds = [aReadyFd(), aReadyFd()]
  for (const fd of fds) {
    loop.watch(fd, READABLE, {
      onEvents() {
        events.push('first')
        // As when it is handed over to another thread, which closes it at once.
        const other = fds.find((each) => each !== fd)!
        loop.unwatch(other)
        mustCall('close', 'close', other)
        const again = aReadyFd()
        expect(again).toBe(other)
        loop.watch(again, READABLE, {
          onEvents() {
            events.push('again')
            loop.close(again)
          },
        })
        loop.close(fd)
      },
    })
  }
  loop.turn(0)
  expect(events).toEqual(['first'])
  loop.turn(0)
  expect(events).toEqual(['first', 'again'])
  loop.dispose()
})

test('dispose() closes what is watched and what was to be closed', () => {
  const loop = new EventLoop()
  const [watched, closed] = [aReadyFd(), aReadyFd()]
  for (const fd of [watched, closed]) loop.watch(fd, READABLE, { onEvents() {} })
  loop.close(closed)
  expect([watched, closed].map(isOpen)).toEqual([true, true])
  loop.dispose()
  expect([watched, closed].map(isOpen)).toEqual([false, false])
})

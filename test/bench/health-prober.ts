// Asks for /healthz all the time, from a process of its own, so that a wait is the proxy's and not that of the benchmark.

import { fork } from 'node:child_process'
import http from 'node:http'

const HEALTH_PORT = 10256
const PAUSE_MS = 5

export class HealthProber {
  readonly #child = fork(new URL(import.meta.url))

  /** How long each answer took since the last time, in milliseconds. */
  take(): Promise<number[]> {
    const answer = new Promise<number[]>((resolve) =>
      this.#child.once('message', (times) => resolve(times as number[])),
    )
    this.#child.send('take')
    return answer
  }

  stop(): void {
    this.#child.kill()
  }
}

async function probe(): Promise<void> {
  let times: number[] = []
  process.on('message', () => {
    process.send!(times)
    times = []
  })
  for (;;) {
    const startMs = performance.now()
    await new Promise<void>((resolve) => {
      const request = http.get({ host: '127.0.0.1', port: HEALTH_PORT, path: '/healthz', agent: false }, (response) => {
        response.resume()
        response.on('close', resolve)
      })
      request.on('error', () => resolve())
    })
    times.push(performance.now() - startMs)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) await probe()

// Asks for /livez all the time, from a process of its own, so that a wait is the proxy's and not that of the test.

import type { ChildProcess } from 'node:child_process'
import { healthzPort } from '../proxy-process.ts'
import type { Netns } from './netns.ts'

/** Prints how long each answer took, in milliseconds, and 'none' for one that did not come. */
const PROGRAM = `
const http = require('node:http')
const ask = () => {
  const began = performance.now()
  const next = (said) => { console.log(said); setTimeout(ask, 20) }
  http.get({ host: '127.0.0.1', port: ${healthzPort}, path: '/livez', agent: false }, (response) => {
    response.resume()
    response.on('close', () => next(response.statusCode === 200 ? performance.now() - began : 'none'))
  }).on('error', () => next('none'))
}
ask()`

export class HealthPoller implements Disposable {
  readonly #child: ChildProcess
  #said = ''

  constructor(netns: Netns) {
    this.#child = netns.spawn([process.execPath, '-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.#said += text))
  }

  /** How long each answer took since the last time; Infinity for one that did not come. */
  take(): number[] {
    const lines = this.#said.split('\n')
    this.#said = lines.pop() ?? ''
    return lines.map((line) => (line === 'none' ? Infinity : Number(line)))
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
  }
}

// The program of the thread that sends: see send-thread.ts.

import { workerData } from 'node:worker_threads'
import { boundCall } from '../system/libc.ts'
import { type SendSettings, STATE } from './send-settings.ts'

run(workerData as SendSettings)

function run(settings: SendSettings): void {
  const send = boundCall('send')
  const words = new Int32Array(settings.words)
  const bytes = new Uint8Array(settings.bytes)
  // Unless it was ended before it began.
  let state = Atomics.compareExchange(words, 0, STATE.starting, STATE.idle)
  while (state !== STATE.ended) {
    Atomics.wait(words, 0, STATE.idle)
    state = Atomics.load(words, 0)
    if (state !== STATE.sending) continue
    words[2] = send(settings.fd, bytes, words[1]!, 0)
    // Unless it was ended meanwhile.
    Atomics.compareExchange(words, 0, STATE.sending, STATE.idle)
    Atomics.notify(words, 0)
  }
}

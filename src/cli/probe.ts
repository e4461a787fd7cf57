// `kube-proxy probe`: what `kube-proxy test` runs in its pods.

import { UsageError } from '../lib/command.ts'

/** `serve POD PORT...` until it is ended, or `dial` until the input ends. */
export async function runProbeCommand([what, pod = '', ...ports]: readonly string[]): Promise<number> {
  if (what === 'dial') {
    const { answerDialRequests } = await import('../probe/session.ts')
    await answerDialRequests(process.stdin, (line) => process.stdout.write(line))
    return 0
  }
  const numbers = ports.map(Number)
  if (pod === '' || numbers.some((port) => !(port > 0 && port < 65_536)))
    throw new UsageError('probe serve needs the name of its pod, and port numbers')
  const { serveProbe } = await import('../probe/serve.ts')
  await serveProbe(pod, numbers)
  // As the first process of a container, it ends by a signal only if it says so. Waiting takes a timer where nothing listens.
  return new Promise((resolve) => {
    const timer = setInterval(() => {}, 2 ** 30)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        clearInterval(timer)
        resolve(0)
      })
    }
  })
}

// Answers questions to the doctor, one per line, as `kube-proxy doctor` does: without a process for each.
//   node ask-doctor.mjs DIST [KUBECONFIG MASTER]

import { createInterface } from 'node:readline'

const [dist, kubeconfig, master] = process.argv.slice(2)
const load = (path) => import(`${dist}/src/diagnose/${path}.js`)
const [{ readProxy }, { readFacts }, { examine, couldNotLook }, { readApi }, { findInstallation }] = await Promise.all([
  load('doctor/read-proxy'),
  load('doctor/read-facts'),
  load('doctor/examine'),
  load('doctor/read-api'),
  load('doctor/installation'),
])

for await (const line of createInterface({ input: process.stdin })) {
  const { service, from = 'node', via, sends = false, seesPods = true } = JSON.parse(line)
  process.stdout.write(`${JSON.stringify(await answer(service, { from, via, sends, seesPods }))}\n`)
}

async function answer(text, { seesPods, ...how }) {
  try {
    const [service, port = ''] = text.split(':')
    const { proxy, known } = await readProxy('')
    const { objects, error: apiError } = seesPods ? await readApi(kubeconfig, master) : {}
    const installation = findInstallation(proxy.kind === 'answers' ? proxy.node : undefined)
    const diagnosis = examine(await readFacts({ service, port, proxy, known, objects, apiError, installation, ...how }))
    return { ...diagnosis, isOpen: couldNotLook(diagnosis) }
  } catch (error) {
    return { error: String(error) }
  }
}

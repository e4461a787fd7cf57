// The manifests of deploy/, applied with kubectl to the API server of the sandbox, which knows every field of them and takes no
// object that is wrong.

import { readdirSync, writeFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { modeNames } from '../../../src/modes/all.ts'
import { startApiServer, type ApiServer } from '../../../packages/sandbox/src/apiserver/start-api-server.ts'
import { checkout } from '../../support/checkout.ts'
import { renderKustomization, type Manifest } from '../../support/kustomize.ts'
import { findKubectls, Kubectl } from './kubectl.ts'

const deploy = join(checkout, 'deploy')
/** Its kinds are those of an operator that the sandbox has not. */
const withoutOperator = readdirSync(join(deploy, 'components')).filter((name) => name !== 'prometheus-operator')
const components = withoutOperator.map((name) => join(deploy, 'components', name))

describe.each(findKubectls())('%s', (program) => {
  let server: ApiServer
  let kubectl: Kubectl
  beforeAll(async () => {
    server = await startApiServer({ serviceCidrs: ['10.96.0.0/16'] })
    kubectl = new Kubectl(program, server.kubeconfig())
  })
  afterAll(async () => {
    kubectl[Symbol.dispose]()
    await server.close()
  })

  const apply = async (objects: readonly Manifest[]) => {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
    const { code, text } = await kubectl.run(['apply', '-f', '-'], list)
    expect(code, text).toBe(0)
    return text
  }

  it('applies the overlay of every mode, and what changes with all components', async () => {
    for (const mode of modeNames) {
      const text = await apply(renderKustomization(join(deploy, 'overlays', mode)))
      expect(text).toMatch(/^daemonset.apps\/kube-proxy-ts (created|configured)$/m)
      expect(text).toMatch(/^configmap\/kube-proxy-ts-\w+ created$/m)
    }
    const overlay = join(deploy, 'overlays', modeNames.at(-1)!)
    const plain = renderKustomization(overlay)
    expect((await apply(plain)).match(/ unchanged$/gm)).toHaveLength(plain.length)
    expect(await apply(renderKustomization(overlay, components))).toMatch(/^service\/kube-proxy-ts-metrics created$/m)
    const { text } = await kubectl.run(['-n', 'kube-system', 'get', 'daemonset', 'kube-proxy-ts', '-o', 'json'])
    const applied = JSON.parse(text) as { spec: { template: { spec: { nodeSelector: object; hostNetwork: boolean } } } }
    expect(applied.spec.template.spec.hostNetwork).toBe(true)
    expect(applied.spec.template.spec.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux' })
  })

  it('takes no object that is wrong', async () => {
    const objects = renderKustomization(join(deploy, 'overlays/nftables'))
    const wrong = (kind: string, field: object) =>
      JSON.stringify({ ...objects.find((object) => object.kind === kind), ...field })
    for (const [text, said] of [
      [wrong('DaemonSet', { spec: { selector: { matchLabels: { a: 'b' } }, template: {} } }), /selector/],
      [wrong('ClusterRole', { rules: [{ verbs: [], apiGroups: [''], resources: ['services'] }] }), /verbs: Required/],
      [wrong('ClusterRoleBinding', { roleRef: { kind: 'Rule', name: 'x', apiGroup: '' } }), /roleRef/],
    ] as const) {
      const answer = await kubectl.run(['create', '--validate=false', '-f', '-'], text)
      expect(answer.code).not.toBe(0)
      expect(answer.text).toMatch(said)
    }
  })

  it.for(modeNames)('makes of the overlay of the mode %s what the tests make of it', async (mode, { skip }) => {
    const { clientVersion } = JSON.parse((await kubectl.run(['version', '--client', '-o', 'json'])).text) as {
      clientVersion: { minor: string }
    }
    if (Number.parseInt(clientVersion.minor, 10) < 21) skip('kubectl is older than 1.21')
    const folder = mkdtempSync(join(tmpdir(), 'overlay-'))
    try {
      mkdirSync(join(folder, 'mine'))
      const all = readdirSync(join(deploy, 'components')).map((name) => `../../..${join(deploy, 'components', name)}`)
      const mine = { resources: [`../../..${deploy}/overlays/${mode}`], components: all }
      const kinds = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization' }
      writeFileSync(join(folder, 'mine/kustomization.yaml'), stringify({ ...kinds, ...mine }))
      for (const each of [join(deploy, 'overlays', mode), join(folder, 'mine')]) {
        const { code, text } = await kubectl.run(['kustomize', each])
        expect(code, text).toBe(0)
        const made = parseAllDocuments(text).map((document) => document.toJS() as Manifest)
        expect(byName(renderKustomization(each))).toEqual(byName(made))
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

function byName(objects: readonly Manifest[]): Map<string, Manifest> {
  return new Map(objects.map((object) => [`${object.kind}/${object.metadata.name}`, object]))
}

// A pod for a moment on a node that runs another kube-proxy: it reads that node's kernel, and changes nothing.

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster, RunningPod } from './cluster.ts'

export interface DebugPodOptions {
  readonly node: string
  readonly image: string
  readonly namespace: string
  readonly timeoutMs: number
}

export const DEBUG_LABEL = 'kube-proxy-ts-debug'
/** It ends by itself, should this program be killed. */
const LIVES_S = 600
const POLL_MS = 300

/** NET_ADMIN is what the kernel asks of a reader of rules; the process may write no file, and has no token of the API server. */
export function planDebugPod({ node, image, namespace }: Omit<DebugPodOptions, 'timeoutMs'>, name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { [DEBUG_LABEL]: 'yes' } },
    spec: {
      nodeName: node,
      hostNetwork: true,
      restartPolicy: 'Never',
      activeDeadlineSeconds: LIVES_S,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      tolerations: [{ operator: 'Exists' }],
      containers: [
        {
          name: 'debug',
          image,
          imagePullPolicy: 'IfNotPresent',
          // The image has no shell. What is run there comes by exec.
          command: ['node', '-e', `setTimeout(() => {}, ${LIVES_S * 1000})`],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
            seccompProfile: { type: 'RuntimeDefault' },
          },
          resources: { requests: { cpu: '10m', memory: '64Mi' } },
        },
      ],
    },
  }
}

/** Does something in such a pod, and deletes it, whatever happens. */
export async function inDebugPod<T>(
  cluster: Cluster,
  options: DebugPodOptions,
  work: (pod: RunningPod) => Promise<T>,
): Promise<T> {
  const { namespace } = options
  const name = `${DEBUG_LABEL}-${randomBytes(4).toString('hex')}`
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`
  await cluster.text({ method: 'POST', path, body: planDebugPod(options, name) })
  try {
    await waitUntilRuns(cluster, `${path}/${name}`, options)
    return await work({ namespace, name, container: 'debug' })
  } finally {
    await cluster.text({ method: 'DELETE', path: `${path}/${name}?gracePeriodSeconds=0` }).catch((error: unknown) => {
      process.stderr.write(`kubectl kubeproxy: pod ${namespace}/${name} is left behind: ${String(error)}\n`)
    })
  }
}

interface PodStatus {
  readonly status?: {
    readonly phase?: string
    readonly message?: string
    readonly containerStatuses?: readonly {
      readonly state?: {
        readonly waiting?: { readonly reason?: string; readonly message?: string }
        readonly running?: object
      }
    }[]
  }
}

async function waitUntilRuns(
  cluster: Cluster,
  path: string,
  { node, image, timeoutMs }: DebugPodOptions,
): Promise<void> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const { status } = await cluster.get<PodStatus>(path)
    const [container] = status?.containerStatuses ?? []
    if (container?.state?.running !== undefined) return
    const { reason = '', message = '' } = container?.state?.waiting ?? {}
    const isBad = /^(ErrImage|ImagePull|InvalidImage|CreateContainer|RunContainer|CrashLoop)/.test(reason)
    const why = [reason, message, status?.message ?? ''].filter(Boolean).join(': ')
    if (status?.phase === 'Failed' || status?.phase === 'Succeeded')
      throw new Error(`Cannot look at node ${node}: the debug pod ended: ${why || status.phase}`)
    if (isBad)
      throw new Error(
        `Cannot look at node ${node}: image ${image} does not start there: ${why}. Another image: --image`,
      )
    if (performance.now() > endMs)
      throw new Error(
        `Cannot look at node ${node}: the debug pod does not run after ${timeoutMs / 1000} s${why === '' ? '' : `: ${why}`}`,
      )
    await sleep(POLL_MS)
  }
}

// The seven steps of the tour: the text, the actions, and the proof that they worked.

import type { Action, Snapshot } from '../../protocol.ts'
import type { PageState } from '../store.ts'
import { awayMs, changesSince, loadSince, tourLoad, type Run, type Stage } from './tour-state.ts'

export interface Step {
  readonly title: string
  readonly words: (stage: Stage) => string
  readonly button: string
  /** In this order. */
  readonly actions: (stage: Stage, snapshot: Snapshot) => readonly Action[]
  /** A packet that is sent. */
  readonly packet?: (stage: Stage) => { readonly from: string; readonly to: string }
  /** Whether the page has shown the effect. */
  readonly isSeen: (run: Run, state: PageState, stage: Stage) => boolean
  readonly shows: readonly ('said' | 'load' | 'packet' | 'changes' | 'proxy' | 'away')[]
  readonly lesson: string
}

/** Later steps watch a client: starts it if the user stopped it. */
function withClient(stage: Stage, { load }: Snapshot, ...actions: Action[]): Action[] {
  return load === null ? [tourLoad(stage), ...actions] : actions
}

export const steps: readonly Step[] = [
  {
    title: 'An address that no interface has',
    words: ({ id, address }) =>
      `The Service ${id} has the cluster IP ${address}. Which machine has this address? Look at every interface of every node and pod.`,
    button: 'Look for it',
    actions: ({ address }) => [{ action: 'find-address', address }],
    isSeen: ({ answers }) => answers.some(({ ok }) => ok),
    shows: ['said'],
    lesson:
      'A cluster IP exists only in the rules that each node’s proxy gave to its kernel. In mode ipvs a dummy interface has it, too.',
  },
  {
    title: 'It answers all the same',
    words: ({ address, port }) =>
      `A client on the machine outside dials ${address}:${port} ten times a second, each time with a new connection. Let it start from zero: who answers?`,
    button: 'Start the client',
    actions: (stage) => [tourLoad(stage)],
    isSeen: (_, { load }) => load !== null && load.answered >= 10 && Object.keys(load.byPod).length >= 2,
    shows: ['load'],
    lesson: 'The kernel chose a pod for each connection. The client knows of one address only.',
  },
  {
    title: 'The way of one packet',
    words: ({ node, id }) =>
      `Send the first packet of a connection from ${node} to ${id} and let the kernel trace which rules it meets. Prediction on the left, the kernel’s trace on the right.`,
    button: 'Send a packet',
    actions: () => [],
    packet: ({ id }) => ({ from: 'node', to: id }),
    isSeen: ({ explained }) => explained !== null && explained.explanation.sent !== null,
    shows: ['packet'],
    lesson:
      'One rule replaces the destination; the connection tracker remembers it for all later packets, and for the answers.',
  },
  {
    title: 'More pods',
    words: ({ deployment }) =>
      `Ask for ${(deployment?.replicas ?? 0) + 3} pods instead of ${deployment?.replicas ?? 0}. Watch what each node writes to its kernel, how long that takes, and the new pods on the map answering the client.`,
    button: 'Scale up',
    actions: (stage, snapshot) =>
      withClient(
        stage,
        snapshot,
        ...(stage.deployment === null
          ? []
          : [
              {
                action: 'scale',
                namespace: stage.namespace,
                deployment: stage.deployment.name,
                replicas: stage.deployment.replicas + 3,
              } as const,
            ]),
      ),
    isSeen: ({ baseline }, { changes, load }, { pods }) =>
      changesSince(changes, baseline).some(({ why, operations }) => why === 'event' && operations > 0) &&
      load !== null &&
      pods.filter((pod) => pod in load.byPod).length >= 4,
    shows: ['changes', 'load'],
    lesson: 'One change of the API is one small transaction of the kernel. No connection waits for it.',
  },
  {
    title: 'Rules that come back',
    words: ({ node }) => `A careless program flushes all the rules of ${node}. How long does the Service stay away?`,
    button: 'Flush the rules',
    actions: (stage, snapshot) => withClient(stage, snapshot, { action: 'flush', node: stage.node }),
    isSeen: (run, { changes, load }) => awayMs(changes, run) !== null && loadSince(load, run.baseline).answered >= 10,
    shows: ['away', 'changes', 'load'],
    lesson: 'The kernel notifies the proxy that its rules changed. The proxy compares, and puts back what is missing.',
  },
  {
    title: 'Without the proxy',
    words: ({ node }) => `Kill the proxy of ${node} with signal 9. Does the client notice?`,
    button: 'Kill the proxy',
    actions: (stage, snapshot) => withClient(stage, snapshot, { action: 'kill-proxy', node: stage.node }),
    isSeen: ({ baseline }, { snapshot, load }, { node }) => {
      const proxy = snapshot.nodes.find(({ name }) => name === node)?.proxy
      const isBack = proxy?.state === 'ready' && proxy.pid !== baseline.pids[node]
      return isBack && loadSince(load, baseline).answered >= 10
    },
    shows: ['proxy', 'load'],
    lesson:
      'Packets are carried by the kernel, not by the proxy. One that starts again finds its rules in place and changes nothing.',
  },
  {
    title: 'A dead pod that no client notices',
    words: ({ id }) =>
      `A pod dies, and its port refuses connections until the API knows. With connect-retry for ${id} the client’s own TCP tries again and gets another pod.`,
    button: 'Kill a pod',
    actions: (stage, snapshot) =>
      withClient(
        stage,
        snapshot,
        { action: 'connect-retry', namespace: stage.namespace, service: stage.name, value: 'on' },
        ...(stage.pods[0] === undefined
          ? []
          : [{ action: 'fail', namespace: stage.namespace, pod: stage.pods[0], how: 'die' } as const]),
      ),
    isSeen: ({ baseline, state }, { load }) => state === 'done' && loadSince(load, baseline).answered >= 30,
    shows: ['said', 'load'],
    lesson: 'The pod gets no new connections until it answers again. Other proxies pass its refusal on to the client.',
  },
]

/** The actions that undo the tour. */
export function tidyUp(snapshot: Snapshot, stage: Stage, replicas: number): Action[] {
  return [
    tourLoad(stage),
    ...snapshot.pods
      .filter(({ fail, terminating }) => fail !== 'none' && !terminating)
      .map(({ namespace, name }): Action => ({ action: 'fail', namespace, pod: name, how: 'none' })),
    { action: 'connect-retry', namespace: stage.namespace, service: stage.name, value: 'off' },
    ...(stage.deployment === null
      ? []
      : [{ action: 'scale', namespace: stage.namespace, deployment: stage.deployment.name, replicas } as const]),
  ]
}

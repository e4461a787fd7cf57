import { useMemo, useState } from 'preact/hooks'
import type { DeploymentInfo, PodInfo } from '../../protocol.ts'
import { ejections, podState } from '../map/pod-state.ts'
import { podId } from '../map/targets.ts'
import { useSnapshot } from '../store.ts'
import { ActButton, type ActProps } from '../act/act-button.tsx'

/** Further pods are found by name. */
const SHOWN = 12

const FAILURES = [
  ['refuse', 'refuse'],
  ['hang', 'hang'],
  ['die', 'die'],
  ['slow', 'slow'],
  ['none', 'heal'],
] as const

export function PodActions(props: ActProps) {
  const { pods, deployments, services } = useSnapshot()
  const [words, setWords] = useState('')
  const ejected = useMemo(() => ejections(services), [services])
  const own = pods.filter(({ namespace }) => namespace !== 'kube-system')
  const found = own.filter((pod) => podId(pod).includes(words.trim()))
  return (
    <section aria-labelledby="pods">
      <h2 id="pods">Pods</h2>
      {deployments
        .filter(({ namespace }) => namespace !== 'kube-system')
        .map((each) => (
          <Scale key={`${each.namespace}/${each.name}`} deployment={each} {...props} />
        ))}
      {own.length > SHOWN && (
        <label>
          <span class="hidden">Find pods by name</span>
          <input
            type="search"
            placeholder="Find a pod"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </label>
      )}
      <ul class="rows">
        {found.slice(0, SHOWN).map((pod) => (
          <PodRow key={podId(pod)} pod={pod} ejectedOn={ejected.get(podId(pod)) ?? []} {...props} />
        ))}
      </ul>
      {found.length > SHOWN && <p class="muted">and {found.length - SHOWN} more</p>}
    </section>
  )
}

function PodRow({ pod, ejectedOn, ...props }: ActProps & { pod: PodInfo; ejectedOn: readonly string[] }) {
  const { name } = pod
  const { kind, word } = podState({ pod }, ejectedOn)
  return (
    <li>
      <span class="row-name">
        <span class="mono">{name}</span>{' '}
        <span class={`small ${kind === 'bad' ? 'bad' : ''}`}>
          {pod.node}
          {word === '' ? '' : `, ${word}`}
        </span>
      </span>
      <PodButtons pod={pod} {...props} />
    </li>
  )
}

/** Breaks and heals a pod, and deletes it. */
export function PodButtons({ pod, ...props }: ActProps & { pod: PodInfo }) {
  const { namespace, name } = pod
  return (
    <span class="buttons">
      {FAILURES.map(([how, words]) => (
        <ActButton
          key={how}
          {...props}
          action={{ action: 'fail', namespace, pod: name, how }}
          label={how === 'none' ? `Heal ${name}` : `Make ${name} ${how}`}
          isOff={pod.fail === how}
        >
          {words}
        </ActButton>
      ))}
      <ActButton {...props} action={{ action: 'delete-pod', namespace, pod: name }} label={`Delete ${name}`}>
        delete
      </ActButton>
    </span>
  )
}

export function Scale({ deployment, ...props }: ActProps & { deployment: DeploymentInfo }) {
  const { namespace, name, replicas, ready } = deployment
  const [typed, setTyped] = useState<number | null>(null)
  const wanted = typed ?? replicas
  const scale = (to: number) => ({ action: 'scale', namespace, deployment: name, replicas: Math.max(0, to) }) as const
  return (
    <div class="line" data-deployment={name}>
      <span class="row-name">
        deployment <b>{name}</b>, {ready} of {replicas} ready
      </span>
      <ActButton {...props} action={scale(replicas - 1)} label={`One pod of ${name} less`} isOff={replicas === 0}>
        −
      </ActButton>
      <ActButton {...props} action={scale(replicas + 1)} label={`One pod of ${name} more`}>
        +
      </ActButton>
      <label>
        <span class="hidden">Pods of {name}</span>
        <input
          type="number"
          min="0"
          max="100"
          value={wanted}
          onInput={(event) => setTyped(Math.min(100, Math.max(0, event.currentTarget.valueAsNumber || 0)))}
        />
      </label>
      <ActButton {...props} action={scale(wanted)} label={`Scale ${name} to ${wanted}`}>
        Scale
      </ActButton>
    </div>
  )
}

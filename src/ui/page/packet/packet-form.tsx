import { useState } from 'preact/hooks'
import type { PodInfo, ServiceInfo } from '../../protocol.ts'
import { podId, serviceId } from '../map/targets.ts'
import { formatRoute } from '../route.ts'
import { useSnapshot } from '../store.ts'
import type { Draft } from './draft.ts'
import { Options } from '../parts/options.tsx'

interface Props {
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly isBusy: boolean
  readonly onExplain: () => void
  readonly onSend: () => void
}

const OTHER = 'other'

export function PacketForm({ draft, onDraft, isBusy, onExplain, onSend }: Props) {
  const { can } = useSnapshot()
  const maySend = can.send === 'anywhere' || (can.send === 'node' && draft.from === 'node')
  return (
    <form
      class="packet-form"
      onSubmit={(event) => {
        event.preventDefault()
        onExplain()
      }}
    >
      <FromField draft={draft} onDraft={onDraft} />
      <span class="arrow" aria-hidden="true">
        →
      </span>
      <ToField draft={draft} onDraft={onDraft} />
      <NodeField draft={draft} onDraft={onDraft} />
      <div class="buttons">
        <button type="submit" disabled={isBusy}>
          Explain
        </button>
        {can.send !== 'nowhere' && (
          <button type="button" class="is-main" disabled={isBusy || !maySend} onClick={onSend}>
            Send it
          </button>
        )}
      </div>
    </form>
  )
}

type FieldProps = Pick<Props, 'draft' | 'onDraft'>

function FromField({ draft, onDraft }: FieldProps) {
  const { outside, nodes, pods } = useSnapshot()
  const value = draft.from === 'node' ? `node ${draft.node}` : draft.from
  const known = new Set(['outside', ...nodes.map(({ name }) => `node ${name}`), ...pods.map(podId)])
  const [isOther, setOther] = useState(!known.has(value))
  const choose = (next: string) => {
    setOther(next === OTHER)
    if (next === OTHER) onDraft({ ...draft, from: '192.0.2.1', node: '' })
    else if (next.startsWith('node ')) onDraft({ ...draft, from: 'node', node: next.slice('node '.length) })
    else onDraft({ ...draft, from: next, node: '' })
  }
  return (
    <div class="field">
      <label>
        From
        <select value={isOther ? OTHER : value} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="outside">{outside === null ? 'a client outside' : 'the machine outside'}</option>
          <optgroup label="nodes">
            {nodes.map(({ name }) => (
              <option key={name} value={`node ${name}`}>
                {name} itself
              </option>
            ))}
          </optgroup>
          {byNamespace(pods).map(([namespace, own]) => (
            <optgroup key={namespace} label={`pods of ${namespace}`}>
              {own.map((pod) => (
                <option key={podId(pod)} value={podId(pod)}>
                  {pod.name} ({pod.node})
                </option>
              ))}
            </optgroup>
          ))}
          <option value={OTHER}>another address …</option>
        </select>
      </label>
      {isOther && (
        <input
          aria-label="The sender’s address"
          value={draft.from}
          onInput={(event) => onDraft({ ...draft, from: event.currentTarget.value })}
        />
      )}
      <a class="small" href={formatRoute('map', { pick: 'from' })}>
        on the map
      </a>
    </div>
  )
}

function ToField({ draft, onDraft }: FieldProps) {
  const { services } = useSnapshot()
  const options = services.flatMap(destinationsOf)
  const [isOther, setOther] = useState(!options.some(({ value }) => value === draft.to))
  const choose = (next: string) => {
    setOther(next === OTHER)
    onDraft({ ...draft, to: next === OTHER ? '10.96.0.1:80' : next, ...(next === OTHER ? { via: '' } : {}) })
  }
  return (
    <div class="field">
      <label>
        To
        <select value={isOther ? OTHER : draft.to} onChange={(event) => choose(event.currentTarget.value)}>
          {options.map(({ value, words }) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
          <option value={OTHER}>another address …</option>
        </select>
      </label>
      {isOther ? (
        <input
          aria-label="The address and port that are dialled"
          value={draft.to}
          onInput={(event) => onDraft({ ...draft, to: event.currentTarget.value })}
        />
      ) : (
        <label class="via">
          <span class="hidden">Dialled at</span>
          <select
            value={draft.via}
            onChange={(event) => onDraft({ ...draft, via: event.currentTarget.value as Draft['via'] })}
          >
            <option value="">at the address that fits</option>
            <option value="clusterIP">at its cluster IP</option>
            <option value="loadBalancerIP">at its load balancer</option>
            <option value="externalIP">at its external IP</option>
            <option value="nodePort">at its node port</option>
          </select>
        </label>
      )}
      <a class="small" href={formatRoute('map', { pick: 'to' })}>
        on the map
      </a>
    </div>
  )
}

/** A pod's packets meet the proxy of its node; others may come to any. */
function NodeField({ draft, onDraft }: FieldProps) {
  const { nodes, pods } = useSnapshot()
  const isGiven = draft.from === 'node' || pods.some((pod) => podId(pod) === draft.from)
  if (isGiven || nodes.length < 2) return null
  return (
    <div class="field">
      <label>
        By way of
        <select value={draft.node} onChange={(event) => onDraft({ ...draft, node: event.currentTarget.value })}>
          <option value="">the first node</option>
          <Options of={nodes.map(({ name }) => name)} />
        </select>
      </label>
    </div>
  )
}

function destinationsOf(service: ServiceInfo): { value: string; words: string }[] {
  const id = serviceId(service)
  if (service.ports.length <= 1) return [{ value: id, words: id }]
  const protocols = new Set(service.ports.map(({ protocol }) => protocol))
  return [
    { value: id, words: id },
    ...service.ports.map(({ port, protocol }) => {
      const value = `${id}:${port}${protocols.size > 1 ? `/${protocol.toLowerCase()}` : ''}`
      return { value, words: value }
    }),
  ]
}

function byNamespace(pods: readonly PodInfo[]): [string, PodInfo[]][] {
  const groups = new Map<string, PodInfo[]>()
  for (const pod of pods) groups.set(pod.namespace, [...(groups.get(pod.namespace) ?? []), pod])
  return [...groups]
}

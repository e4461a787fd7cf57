import { useState } from 'preact/hooks'
import type { PodInfo, ServiceInfo } from '../../protocol.ts'
import { podId, serviceId } from '../map/targets.ts'
import { formatRoute } from '../route.ts'
import { useSnapshot } from '../store.ts'
import type { Draft } from './draft.ts'
import { Options, Select } from '../parts/select.tsx'

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
      <Select
        label="From"
        value={isOther ? OTHER : value}
        onChoose={choose}
        options={[['outside', outside === null ? 'a client outside' : 'the machine outside']]}
      >
        <optgroup label="nodes">
          <Options of={nodes.map(({ name }) => [`node ${name}`, `${name} itself`])} />
        </optgroup>
        {byNamespace(pods).map(([namespace, own]) => (
          <optgroup key={namespace} label={`pods of ${namespace}`}>
            <Options of={own.map((pod) => [podId(pod), `${pod.name} (${pod.node})`])} />
          </optgroup>
        ))}
        <option value={OTHER}>another address …</option>
      </Select>
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
  const [isOther, setOther] = useState(!options.includes(draft.to))
  const choose = (next: string) => {
    setOther(next === OTHER)
    onDraft({ ...draft, to: next === OTHER ? '10.96.0.1:80' : next, ...(next === OTHER ? { via: '' } : {}) })
  }
  return (
    <div class="field">
      <Select
        label="To"
        value={isOther ? OTHER : draft.to}
        onChoose={choose}
        options={[...options, [OTHER, 'another address …']]}
      />
      {isOther ? (
        <input
          aria-label="The address and port that are dialled"
          value={draft.to}
          onInput={(event) => onDraft({ ...draft, to: event.currentTarget.value })}
        />
      ) : (
        <Select
          label="Dialled at"
          isLabelHidden
          class="via"
          value={draft.via}
          onChoose={(via) => onDraft({ ...draft, via: via as Draft['via'] })}
          options={[
            ['', 'at the address that fits'],
            ['clusterIP', 'at its cluster IP'],
            ['loadBalancerIP', 'at its load balancer'],
            ['externalIP', 'at its external IP'],
            ['nodePort', 'at its node port'],
          ]}
        />
      )}
      <a class="small" href={formatRoute('map', { pick: 'to' })}>
        on the map
      </a>
    </div>
  )
}

/** A pod's packets meet the proxy of its node; others may arrive at any node. */
function NodeField({ draft, onDraft }: FieldProps) {
  const { nodes, pods } = useSnapshot()
  const isGiven = draft.from === 'node' || pods.some((pod) => podId(pod) === draft.from)
  if (isGiven || nodes.length < 2) return null
  return (
    <div class="field">
      <Select
        label="By way of"
        value={draft.node}
        onChoose={(node) => onDraft({ ...draft, node })}
        options={[['', 'the first node'], ...nodes.map(({ name }) => name)]}
      />
    </div>
  )
}

function destinationsOf(service: ServiceInfo): string[] {
  const id = serviceId(service)
  if (service.ports.length <= 1) return [id]
  const protocols = new Set(service.ports.map(({ protocol }) => protocol))
  const suffixOf = (protocol: string) => (protocols.size > 1 ? `/${protocol.toLowerCase()}` : '')
  return [id, ...service.ports.map(({ port, protocol }) => `${id}:${port}${suffixOf(protocol)}`)]
}

function byNamespace(pods: readonly PodInfo[]): [string, PodInfo[]][] {
  const groups = new Map<string, PodInfo[]>()
  for (const pod of pods) groups.set(pod.namespace, [...(groups.get(pod.namespace) ?? []), pod])
  return [...groups]
}

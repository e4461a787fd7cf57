import { useEffect, useRef, useState } from 'preact/hooks'
import type { ServiceDetail, ServiceQuery, Snapshot } from '../../protocol.ts'
import { messageOf, shown, type Waited } from '../parts/async.ts'
import { readService } from '../connect.ts'
import { useStore } from '../store.ts'

/** At most one question at a time, and some time between two. */
const PAUSE_MS = 400

/** A service as a node's proxy and kernel have it; asked again when something about it may have changed. */
export function useDetail({ namespace, name, node }: ServiceQuery, snapshot: Snapshot): Waited<ServiceDetail> {
  const [detail, setDetail] = useState<Waited<ServiceDetail>>({ state: 'none' })
  const store = useStore()
  const changes = useRef(0)
  const version = keyOf({ namespace, name, node }, snapshot)
  const [lastChange, setLastChange] = useState(0)
  useEffect(
    () =>
      store.subscribe(() => {
        const id = store.state.changes.findLast((each) => each.node === node)?.id ?? 0
        if (id !== changes.current) setLastChange((changes.current = id))
      }),
    [store, node],
  )
  useEffect(() => {
    if (name === '' || node === '') return
    let isCurrent = true
    const ask = () => {
      setDetail((before) => ({ state: 'waiting', before: sameService(shown(before), { namespace, name, node }) }))
      readService({ namespace, name, node }).then(
        (value) => isCurrent && setDetail({ state: 'here', value }),
        (error: unknown) => isCurrent && setDetail({ state: 'failed', error: messageOf(error) }),
      )
    }
    const timer = setTimeout(ask, shown(detail) === null ? 0 : PAUSE_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [namespace, name, node, version, lastChange])
  return detail
}

function sameService(detail: ServiceDetail | null, { namespace, name, node }: ServiceQuery): ServiceDetail | null {
  const isSame = detail?.namespace === namespace && detail.name === name && detail.node === node
  return isSame ? detail : null
}

/** What an answer depends on and a snapshot shows. */
function keyOf({ namespace, name, node }: ServiceQuery, { services, nodes }: Snapshot): string {
  const service = services.find((each) => each.namespace === namespace && each.name === name)
  const asked = nodes.find((each) => each.name === node)
  return JSON.stringify([service, asked?.mode, asked?.proxy.state, asked?.proxy.pid])
}

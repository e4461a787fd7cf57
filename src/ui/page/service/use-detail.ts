import { useEffect, useRef, useState } from 'preact/hooks'
import type { ServiceDetail, ServiceQuery, Snapshot } from '../../protocol.ts'
import { messageOf } from '../../../lib/errors.ts'
import { shown, type Waited } from '../parts/async.ts'
import { readService } from '../connect.ts'
import { useStore } from '../store.ts'
import { Refresher } from './refresher.ts'

/** Between two requests. */
const PAUSE_MS = 400

/** A service as a node's proxy and kernel have it; read again when it may have changed. */
export function useDetail({ namespace, name, node }: ServiceQuery, snapshot: Snapshot): Waited<ServiceDetail> {
  const [detail, setDetail] = useState<Waited<ServiceDetail>>({ state: 'none' })
  const store = useStore()
  const refresher = useRef<Refresher<ServiceDetail> | null>(null)
  const version = keyOf({ namespace, name, node }, snapshot)
  const askedAt = useRef(version)
  useEffect(() => {
    if (name === '' || node === '') return
    const query = { namespace, name, node }
    const current = new Refresher<ServiceDetail>(PAUSE_MS, {
      ask: (signal) => {
        setDetail((before) => ({ state: 'waiting', before: sameService(shown(before), query) }))
        return readService(query, signal)
      },
      answered: (value) => setDetail({ state: 'here', value }),
      failed: (error) => setDetail({ state: 'failed', error: messageOf(error) }),
    })
    refresher.current = current
    askedAt.current = version
    const lastChange = () => store.state.changes.findLast((each) => each.node === node)?.id
    let change = lastChange()
    const end = store.subscribe(() => {
      if (change === (change = lastChange())) return
      current.again()
    })
    return () => {
      end()
      current.close()
      refresher.current = null
    }
  }, [store, namespace, name, node])
  useEffect(() => {
    if (askedAt.current !== version) refresher.current?.again()
    askedAt.current = version
  }, [version])
  return detail
}

function sameService(detail: ServiceDetail | null, { namespace, name, node }: ServiceQuery): ServiceDetail | null {
  const isSame = detail?.namespace === namespace && detail.name === name && detail.node === node
  return isSame ? detail : null
}

/** The parts of a snapshot on which the answer depends. */
function keyOf({ namespace, name, node }: ServiceQuery, { services, nodes }: Snapshot): string {
  const service = services.find((each) => each.namespace === namespace && each.name === name)
  const asked = nodes.find((each) => each.name === node)
  return JSON.stringify([service, asked?.mode, asked?.proxy.state, asked?.proxy.pid])
}

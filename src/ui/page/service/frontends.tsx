import type { FrontendDetail, ServiceDetail } from '../../protocol.ts'
import { Pointer, row, type Pointing } from './pointing.tsx'

const KINDS: Readonly<Record<FrontendDetail['kind'], string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load balancer',
  nodePort: 'node port',
}

/** The addresses that clients dial, with the routes of each kind of client. */
export function Frontends({ detail, ...pointing }: Pointing & { readonly detail: ServiceDetail }) {
  return (
    <>
      <h2>Frontends: what clients dial</h2>
      {detail.frontends.length === 0 && <p class="muted">The proxy serves none.</p>}
      <ul class="cards">
        {detail.frontends.map((frontend) => (
          <li key={frontend.id} {...row(pointing, 'frontend', frontend.id)} data-frontend={frontend.id}>
            <div class="card-head">
              <Pointer {...pointing} kind="frontend" id={frontend.id}>
                {frontend.id}
              </Pointer>
              <span class="tag">{KINDS[frontend.kind]}</span>
            </div>
            <Routes frontend={frontend} all={detail.backends.filter(({ port }) => port === frontend.port).length} />
            {frontend.affinitySeconds !== null && (
              <p class="small">the same client gets the same endpoint for {frontend.affinitySeconds} s</p>
            )}
            {frontend.allowedSources !== null && <p class="small">only from {frontend.allowedSources.join(', ')}</p>}
          </li>
        ))}
      </ul>
    </>
  )
}

type Route = FrontendDetail['routes'][number]

/** Clients with the same route share a line. */
function Routes({ frontend, all }: { frontend: FrontendDetail; all: number }) {
  const groups = new Map<string, { route: Route; from: string[] }>()
  for (const { from, ...rest } of frontend.routes) {
    const key = JSON.stringify(rest)
    const group = groups.get(key) ?? { route: { from, ...rest }, from: [] }
    group.from.push(from)
    groups.set(key, group)
  }
  return (
    <dl class="routes">
      {[...groups].map(([key, { route, from }]) => (
        <div key={key}>
          <dt>{from.length === frontend.routes.length ? 'from anywhere' : `from ${from.join(', ')}`}</dt>
          <dd>
            <b class={route.outcome === 'to' ? '' : 'bad'}>{outcomeWords(route, all)}</b>
            {route.outcome !== 'to' && <span class="small"> {route.because}</span>}
            {route.outcome === 'to' && route.masquerade !== null && (
              <span class="small" {...(route.masqueradeWhy === null ? {} : { title: route.masqueradeWhy })}>
                , {masqueradeWords(route.masquerade)}
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function outcomeWords({ outcome, backends }: Route, all: number): string {
  if (outcome === 'to') return `to one of ${backends.length}${backends.length === all ? '' : ` of ${all}`}`
  return { reject: 'refused', drop: 'dropped', untouched: 'passed unchanged' }[outcome]
}

function masqueradeWords(masquerade: NonNullable<Route['masquerade']>): string {
  if (masquerade === true) return 'masqueraded'
  return masquerade === false ? 'source kept' : 'masqueraded for some endpoints'
}

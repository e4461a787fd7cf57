// The header, and the view in the page's address.

import { useEffect, useRef } from 'preact/hooks'
import { ChangesView } from './changes/changes-view.tsx'
import { GameView } from './game/game-view.tsx'
import { HandsOnView } from './hands-on/hands-on-view.tsx'
import { MapView } from './map/map-view.tsx'
import { PacketView } from './packet/packet-view.tsx'
import { Header } from './parts/header.tsx'
import type { Route } from './route.ts'
import { ServiceView } from './service/service-view.tsx'
import { TourView } from './tour/tour-view.tsx'

export function App({ route }: { route: Route }) {
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    // A new view gets the focus, as a new page would: screen readers announce it.
    if (!isFirst.current) {
      main.current?.focus({ preventScroll: true })
      scrollTo(0, 0)
    }
    isFirst.current = false
    document.title = `${document.querySelector('h1')?.textContent ?? 'kube-proxy'} · kube-proxy`
  }, [route.view])
  return (
    <>
      <Header view={route.view} />
      <main id="main" ref={main} tabIndex={-1} class={`view view-${route.view}`}>
        <Viewed route={route} />
      </main>
    </>
  )
}

function Viewed({ route: { view, query } }: { route: Route }) {
  switch (view) {
    case 'map':
      return <MapView query={query} />
    case 'service':
      return <ServiceView query={query} />
    case 'packet':
      return <PacketView query={query} />
    case 'changes':
      return <ChangesView query={query} />
    case 'hands-on':
      return <HandsOnView />
    case 'game':
      return <GameView />
    case 'tour':
      return <TourView />
  }
}

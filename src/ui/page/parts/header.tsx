import { formatRoute, type View } from '../route.ts'
import { usePart, useSnapshot, type Connection } from '../store.ts'
import { ThemeSwitch } from './theme-switch.tsx'

const words: Readonly<Record<View, string>> = {
  map: 'Map',
  service: 'Service',
  packet: 'Packet',
  changes: 'Changes',
  'hands-on': 'Hands on',
  tour: 'Tour',
  game: 'Game',
}

const IN_SANDBOX: readonly View[] = ['hands-on', 'tour', 'game']

export function Header({ view }: { view: View }) {
  const { kind, name, can } = useSnapshot()
  const shown = (Object.keys(words) as View[]).filter((each) => can.act || !IN_SANDBOX.includes(each))
  return (
    <header class="top">
      <a class="skip" href="#main" onClick={skipToMain}>
        To the content
      </a>
      <div class="brand">
        <Mark />
        <span class="brand-name">kube-proxy</span>
        <span class="brand-place">
          {kind !== name && `${kind} `}
          <b>{name}</b>
        </span>
      </div>
      <nav aria-label="Views">
        <ul>
          {shown.map((each) => (
            <li key={each}>
              <a href={formatRoute(each)} {...(each === view ? { 'aria-current': 'page' } : {})}>
                {words[each]}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="status">
        <States />
        <ThemeSwitch />
      </div>
    </header>
  )
}

/** A link to #main would change the view: it is the part of the address after `#`. */
function skipToMain(event: Event): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

function States() {
  const connection = usePart((state) => state.connection)
  const { apiServer } = useSnapshot()
  return (
    <p class="states" role="status">
      {apiServer.state === 'away' && <span class="state is-bad">API server away</span>}
      <span
        class={`state ${connection.state === 'live' ? 'is-live' : connection.state === 'connecting' ? '' : 'is-bad'}`}
      >
        {connectionWords(connection)}
      </span>
    </p>
  )
}

function connectionWords(connection: Connection): string {
  if (connection.state === 'live') return 'live'
  if (connection.state === 'ended') return `ended: ${connection.reason}`
  return connection.state === 'lost' ? 'connection lost' : 'connecting'
}

function Mark() {
  return (
    <svg class="mark" width="26" height="22" viewBox="0 0 26 22" aria-hidden="true">
      <path d="M5 11C13 11 13 3.5 20 3.5M5 11H20M5 11C13 11 13 18.500 20 18.500" fill="none" />
      <circle cx="4.500" cy="11" r="3.500" />
      <circle cx="21.500" cy="3.500" r="2.500" />
      <circle cx="21.500" cy="11" r="2.500" />
      <circle cx="21.500" cy="18.500" r="2.500" />
    </svg>
  )
}

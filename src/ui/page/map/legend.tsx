import { useSnapshot } from '../store.ts'

/** What lines and marks mean; each differs by more than its colour. */
export function Legend() {
  const { kind } = useSnapshot()
  return (
    <ul class="legend" aria-label="Legend">
      <Item words="leads there">
        <path class="edge is-led" d="M1 7H33" stroke-width="1" />
      </Item>
      <Item words="answered: the wider, the more packets">
        <path class="edge is-led is-flowing" d="M1 7H33" stroke-width="5" />
      </Item>
      <Item words={kind === 'sandbox' ? 'refused' : 'refused or dropped'}>
        <path class="edge is-refused" d="M1 7H33" stroke-width="3" />
      </Item>
      {kind === 'sandbox' && (
        <>
          <Item words="timed out">
            <path class="edge is-timed-out" d="M1 7H33" stroke-width="3" />
          </Item>
          <Item words="retried elsewhere: the client was answered">
            <path class="edge is-retried" d="M1 7H33" stroke-width="3" />
          </Item>
        </>
      )}
      <Item words="ejected: no new connections">
        <path class="edge is-ejected" d="M1 7H33" stroke-width="2" />
      </Item>
    </ul>
  )
}

function Item({ words, children }: { words: string; children: preact.ComponentChildren }) {
  return (
    <li>
      <svg width="34" height="14" aria-hidden="true">
        {children}
      </svg>
      {words}
    </li>
  )
}

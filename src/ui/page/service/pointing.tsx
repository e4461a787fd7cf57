// Highlights related parts of a service: while the pointer or the focus is on one, and after a click on it.

import type { ComponentChildren } from 'preact'
import type { Linked, Pointed } from './links.ts'

export interface Pointing {
  /** The part under the pointer, or else the one that was clicked. */
  readonly current: Pointed | null
  readonly linked: Linked | null
  readonly pinned: Pointed | null
  readonly onPoint: (pointed: Pointed | null) => void
  readonly onPin: (pointed: Pointed) => void
}

type Props = Pointing & { readonly kind: Pointed['kind']; readonly id: string; readonly children: ComponentChildren }

export function Pointer({ kind, id, children, pinned, onPoint, onPin }: Props) {
  return (
    <button
      type="button"
      class="pointer"
      aria-pressed={pinned?.kind === kind && pinned.id === id}
      onClick={() => onPin({ kind, id })}
      onFocus={() => onPoint({ kind, id })}
      onBlur={() => onPoint(null)}
    >
      {children}
    </button>
  )
}

/** The properties of a row. */
export function row({ linked, onPoint }: Pointing, kind: Pointed['kind'], id: string) {
  const lit = linked === null ? null : linked[`${kind}s`].has(id)
  return {
    class: lit === null ? '' : lit ? 'is-lit' : 'is-dim',
    onMouseEnter: () => onPoint({ kind, id }),
    onMouseLeave: () => onPoint(null),
  }
}

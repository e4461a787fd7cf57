import type { ComponentChildren } from 'preact'

interface Props {
  readonly isWide?: boolean
  /** A row that is false is left out. */
  readonly rows: readonly (readonly [name: string, value: ComponentChildren] | false)[]
}

/** Names with their values. */
export function Facts({ isWide = false, rows }: Props) {
  return (
    <dl class={isWide ? 'facts is-wide' : 'facts'}>
      {rows.map(
        (row, i) =>
          row !== false && (
            <div key={i}>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

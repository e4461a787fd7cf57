import type { ComponentChildren } from 'preact'

interface Props {
  readonly label: string
  /** The heads of its columns; `number`: aligned as numbers are. */
  readonly heads: readonly (string | readonly [head: string, kind: 'number'])[]
  /** Its rows. */
  readonly children: ComponentChildren
}

/** A table that can be scrolled where it is too wide, also by keyboard. */
export function Table({ label, heads, children }: Props) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => {
              const [words, kind = ''] = typeof head === 'string' ? [head] : head
              return (
                <th key={words} scope="col" class={kind}>
                  {words}
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

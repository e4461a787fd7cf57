import type { ComponentChildren } from 'preact'

interface Props {
  readonly label: string
  /** The label is for readers of the screen only. */
  readonly isLabelHidden?: boolean
  readonly class?: string
  readonly value: string | undefined
  readonly onChoose: (value: string) => void
  /** Values, or values with what they are called. */
  readonly options?: readonly (string | readonly [value: string, words: string])[]
  /** Groups of more options. */
  readonly children?: ComponentChildren
}

/** A labelled choice. */
export function Select({ label, isLabelHidden = false, class: name = '', value, onChoose, options, children }: Props) {
  return (
    <label class={name}>
      {isLabelHidden ? <span class="hidden">{label}</span> : `${label} `}
      <select value={value ?? ''} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options !== undefined && <Options of={options} />}
        {children}
      </select>
    </label>
  )
}

export function Options({ of }: { readonly of: NonNullable<Props['options']> }) {
  return (
    <>
      {of
        .map((each) => (typeof each === 'string' ? ([each, each] as const) : each))
        .map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
    </>
  )
}

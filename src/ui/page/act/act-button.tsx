import type { ComponentChildren } from 'preact'
import { commandFor } from '../../commands.ts'
import type { Action } from '../../protocol.ts'
import { useStore } from '../store.ts'

export interface ActProps {
  readonly doIt: (action: Action) => void
  /** Shows the command of a button before it is pressed. */
  readonly onShow: (command: string) => void
}

interface Props extends ActProps {
  readonly action: Action
  readonly children: ComponentChildren
  readonly label?: string
  readonly isOn?: boolean
  readonly isOff?: boolean
}

/** A click acts; pointing at the button shows the equivalent command. */
export function ActButton({ action, doIt, onShow, children, label, isOn, isOff = false }: Props) {
  const store = useStore()
  const show = () => onShow(commandFor(action, store.state.snapshot))
  return (
    <button
      type="button"
      disabled={isOff}
      onMouseEnter={show}
      onFocus={show}
      onClick={() => doIt(action)}
      {...(label === undefined ? {} : { 'aria-label': label })}
      {...(isOn === undefined ? {} : { 'aria-pressed': isOn })}
    >
      {children}
    </button>
  )
}

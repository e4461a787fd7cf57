import { Component, type ComponentChildren, type FunctionComponent, h } from 'preact'

/** A view that is drawn again only when one of its properties changes. */
export function memo<Props extends object>(view: (props: Props) => ComponentChildren): FunctionComponent<Props> {
  class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const before = this.props
      return (Object.keys(next) as (keyof Props)[]).some((name) => next[name] !== (before as Props)[name])
    }
    override render(props: Props) {
      return view(props)
    }
  }
  return (props: Props) => h(Memo, props as never)
}

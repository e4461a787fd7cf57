// A small chart of the last five minutes as paths. Pure.

/** The page shows what it has: at first a minute, five at most. */
export const SPANS = [60, 120, 300] as const
export type Span = (typeof SPANS)[number]
export const HEIGHT = 56

export interface Curve {
  readonly name: string
  /** One for each second, the newest last; null: not known. */
  readonly values: readonly (number | null)[]
}

export interface PlannedChart {
  /** The value at the top. */
  readonly top: number
  readonly curves: readonly { readonly name: string; readonly path: string; readonly area: string }[]
}

export function spanOf(count: number): Span {
  return SPANS.find((each) => count <= each) ?? SPANS[2]
}

/** The newest value is at the right. */
export function planChart(curves: readonly Curve[], least: number, span: Span): PlannedChart {
  const most = Math.max(least, ...curves.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const top = roundUp(most)
  return { top, curves: curves.map((curve) => ({ name: curve.name, ...planCurve(curve.values, top, span) })) }
}

function planCurve(values: readonly (number | null)[], top: number, span: Span): { path: string; area: string } {
  const shown = values.slice(-span)
  const first = span - shown.length + 1
  let path = ''
  let area = ''
  let begin: number | null = null
  const close = (x: number) => {
    if (begin !== null) area += `L${x} ${HEIGHT}L${begin} ${HEIGHT}Z`
    begin = null
  }
  for (const [i, value] of shown.entries()) {
    const x = first + i
    if (value === null) {
      close(x - 1)
      continue
    }
    const point = `${x} ${Math.round((HEIGHT - (HEIGHT - 2) * Math.min(1, value / top)) * 10) / 10}`
    path += `${begin === null ? 'M' : 'L'}${point}`
    area += `${begin === null ? 'M' : 'L'}${point}`
    begin ??= x
  }
  close(first + shown.length - 1)
  return { path, area }
}

/** 1, 2, 5, 10, 20, 50, ... */
export function roundUp(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map((factor) => factor * unit).find((each) => each >= value * 0.999) ?? value
}

// Kubernetes quantities that are numbers of bytes: "512", "1K", "2Ki".

const suffixes: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
}

/** The number, or undefined when the text is no quantity. Fractions of a byte are rounded up, as Kubernetes does. */
export function parseQuantity(text: string): number | undefined {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([kKMGTP]i?)|[eE]([+-]?\d+))?$/.exec(text)
  if (match === null) return undefined
  const factor = match[3] === undefined ? suffixes[match[2] ?? ''] : 10 ** Number(match[3])
  return factor === undefined ? undefined : Math.ceil(Number(match[1]) * factor)
}

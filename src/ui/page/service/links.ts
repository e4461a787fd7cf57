// Which rules belong to which address and which endpoint: pointing at one shows the others.

import type { KernelObject, ServiceDetail } from '../../protocol.ts'

/** An id in ServiceDetail, with its kind. */
export type Pointed = { readonly kind: 'frontend' | 'backend' | 'object'; readonly id: string }

export interface Linked {
  readonly frontends: ReadonlySet<string>
  readonly backends: ReadonlySet<string>
  readonly objects: ReadonlySet<string>
}

export function linkedTo(pointed: Pointed | null, { frontends, backends, objects }: ServiceDetail): Linked | null {
  if (pointed === null) return null
  const { kind, id } = pointed
  if (kind === 'object') {
    const object = objects.find((each) => each.id === id)
    return {
      frontends: new Set(object?.frontends),
      backends: new Set(object?.backends),
      objects: new Set([id]),
    }
  }
  if (kind === 'frontend') {
    const frontend = frontends.find((each) => each.id === id)
    return {
      frontends: new Set([id]),
      backends: new Set(frontend?.routes.flatMap((route) => route.backends)),
      objects: new Set(frontend?.objects),
    }
  }
  const backend = backends.find((each) => each.id === id)
  return {
    frontends: new Set(
      frontends.filter(({ routes }) => routes.some((route) => route.backends.includes(id))).map((each) => each.id),
    ),
    backends: new Set([id]),
    objects: new Set(backend?.objects),
  }
}

/** Whether an object of the kernel belongs to nothing but what is pointed at. */
export function isOwn(pointed: Pointed | null, { frontends, backends }: KernelObject): boolean {
  if (pointed === null) return false
  if (pointed.kind === 'backend') return backends.length === 1 && backends[0] === pointed.id
  return pointed.kind === 'frontend' && frontends.length === 1 && frontends[0] === pointed.id
}

// Which service port has a frontend.

import { inPieces } from '../lib/in-pieces.ts'
import type { ServicePortView } from './types.ts'

/** Service ports that are looked at before other work gets a turn. */
const PIECE = 1024

export class ServiceFinder {
  #views: readonly ServicePortView[] = []
  #names = new Map<string, string>()

  /** Returns whether anything is different. */
  async follow(views: readonly ServicePortView[]): Promise<boolean> {
    const before = this.#views
    if (views.length === before.length && views.every((view, i) => view === before[i])) return false
    const names = new Map<string, string>()
    await inPieces(views, PIECE, ({ name, frontends }) => {
      for (const { protocol, address, port } of frontends) names.set(`${protocol} ${address ?? ''} ${port}`, name)
    })
    this.#views = views
    this.#names = names
    return true
  }

  /** Without an address, or with one that is no frontend's: a node port. */
  at(protocol: string, address: string | undefined, port: number): string | undefined {
    return this.#names.get(`${protocol} ${address ?? ''} ${port}`) ?? this.#names.get(`${protocol}  ${port}`)
  }
}

import type { FrontendAddress, ServicePortView } from '../model/types.ts'

/** Finds the UDP frontends that the kernel still served and that no service port has any more. */
export class ServedBefore {
  readonly #rest: Map<string, FrontendAddress>

  constructor(frontends: Iterable<FrontendAddress>) {
    this.#rest = new Map(Array.from(frontends, (frontend) => [idOf(frontend), frontend]))
  }

  stays({ protocol, frontends }: ServicePortView): void {
    if (protocol === 'UDP' && this.#rest.size > 0) for (const frontend of frontends) this.#rest.delete(idOf(frontend))
  }

  rest(): FrontendAddress[] {
    return [...this.#rest.values()]
  }
}

function idOf({ address, port }: FrontendAddress): string {
  return `${address} ${port}`
}

// The ports at which connections to backends begin, when their source is to be replaced. All threads share them.

import type { PortRange } from "../../../lib/port-range.ts";

const PORTS = 65_536;
/** How many ports are looked at to find one that is free. */
const LOOKS = 256;
/** In place of a number of users: the operator keeps the port for other programs. */
const RESERVED = -1;

export interface SourcePort {
  readonly port: number;
  /** No other connection uses it. Otherwise it can serve again for another backend. */
  readonly isExclusive: boolean;
}

export class SourcePorts {
  /** How many connections use each port. */
  readonly #users: Int32Array;
  readonly #range: PortRange;
  #next: number;

  constructor(memory: SharedArrayBuffer, range: PortRange) {
    this.#users = new Int32Array(memory);
    this.#range = range;
    this.#next =
      range.first + Math.floor(Math.random() * (range.last - range.first + 1));
  }

  /** Reserved ports are never taken. */
  static createMemory(reserved: Iterable<number> = []): SharedArrayBuffer {
    const memory = new SharedArrayBuffer(PORTS * Int32Array.BYTES_PER_ELEMENT);
    const users = new Int32Array(memory);
    for (const port of reserved) users[port] = RESERVED;
    return memory;
  }

  /**
   * The free port whose last use is longest ago; one that is in use when none is found free. undefined: all are reserved.
   */
  take(): SourcePort | undefined {
    for (let looks = 0; looks < LOOKS; looks++) {
      const port = this.#step();
      if (Atomics.compareExchange(this.#users, port, 0, 1) === 0)
        return { port, isExclusive: true };
    }
    for (
      let looks = this.#range.last - this.#range.first + 1;
      looks > 0;
      looks--
    ) {
      const port = this.#step();
      if (this.#users[port] === RESERVED) continue;
      Atomics.add(this.#users, port, 1);
      return { port, isExclusive: false };
    }
    return undefined;
  }

  giveBack(port: number): void {
    Atomics.sub(this.#users, port, 1);
  }

  #step(): number {
    const port = this.#next;
    this.#next = port >= this.#range.last ? this.#range.first : port + 1;
    return port;
  }
}

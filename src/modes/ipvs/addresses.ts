// Which addresses have to be on the link, and how many service ports need each.

import type { ServicePortChange, ServicePortView } from "../../model/types.ts";
import { ipvsPlanner } from "./plan/planner.ts";
import type { LinkOp } from "../../links/types.ts";

export class AddressUsers {
  /** Addresses that the node has anyway are not bound, and are not its to lose when a service goes. */
  readonly #others: ReadonlySet<string>;
  readonly #users = new Map<string, number>();

  constructor(others: Iterable<string>, views: Iterable<ServicePortView>) {
    this.#others = new Set(others);
    for (const view of views)
      for (const address of this.#addresses(view)) this.#count(address, 1);
  }

  /** All that have to be on the link. */
  bound(): ReadonlySet<string> {
    return new Set(this.#users.keys());
  }

  /** Follows changes; returns what they mean for the link. */
  change(changes: readonly ServicePortChange[]): LinkOp[] {
    const before = new Map<string, boolean>();
    const touch = (view: ServicePortView | undefined, delta: 1 | -1) => {
      for (const address of view === undefined ? [] : this.#addresses(view)) {
        if (!before.has(address)) before.set(address, this.#users.has(address));
        this.#count(address, delta);
      }
    };
    for (const change of changes) {
      touch(change.after, 1);
      touch(change.before, -1);
    }
    return Array.from(before).flatMap(([address, wasBound]): LinkOp[] => {
      const isBound = this.#users.has(address);
      if (wasBound === isBound) return [];
      return [{ op: isBound ? "addAddress" : "deleteAddress", address }];
    });
  }

  #addresses(view: ServicePortView): string[] {
    return ipvsPlanner
      .addresses(view)
      .filter((address) => !this.#others.has(address));
  }

  #count(address: string, delta: 1 | -1): void {
    const users = (this.#users.get(address) ?? 0) + delta;
    if (users > 0) this.#users.set(address, users);
    else this.#users.delete(address);
  }
}

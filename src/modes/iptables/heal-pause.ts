// How soon rules are compared with the kernel after another program changed something.

import type { Clock, Timer } from "../../lib/clock.ts";

/** Changes come in groups, such as the commands of a script. */
const GROUP_MS = 50;
/** A comparison may take this share of the time at most. */
const SHARE = 0.1;
/** And this one when there is no sign of a change. */
const IDLE_SHARE = 0.02;

/**
 * Other programs may change the tables that we share with them all day long. Comparing takes the longer the more rules there
 * are, so the pause between two comparisons is a multiple of what one takes.
 */
export class HealPause {
  readonly #clock: Clock;
  readonly #heal: () => void;
  #timer: Timer | undefined;
  #earliestMs = 0;
  #earliestCheckMs = 0;

  constructor(clock: Clock, heal: () => void) {
    this.#clock = clock;
    this.#heal = heal;
  }

  /** Another program changed something: heals soon. */
  request(): void {
    const waitMs = Math.max(
      GROUP_MS,
      this.#earliestMs - this.#clock.monotonicNow(),
    );
    this.#timer ??= this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#heal();
    }, waitMs);
  }

  /** Another program may have changed something: heals now, unless that was done not long ago. */
  check(): void {
    if (
      this.#timer === undefined &&
      this.#clock.monotonicNow() >= this.#earliestCheckMs
    )
      this.#heal();
  }

  /** A comparison has ended that took so long. */
  compared(tookMs: number): void {
    const nowMs = this.#clock.monotonicNow();
    this.#earliestMs = nowMs + tookMs / SHARE;
    this.#earliestCheckMs = nowMs + tookMs / IDLE_SHARE;
  }

  close(): void {
    this.#timer?.cancel();
  }
}

// The one order of closing: the steps as they are given, each to its end, whatever became of those before.

/** One thing to withdraw, wait for or close. */
export type ClosingStep = () => unknown

/**
 * Takes the steps one after the other. A step that fails does not keep the rest from being closed; the first error is
 * thrown at the end. So give them in this order: what withdraws something first, what it needs for that after it.
 */
export async function closeAll(...steps: readonly ClosingStep[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

/** The same for steps that are done when they return. */
export function closeAllNow(...steps: readonly (() => void)[]): void {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

import { setFlagsFromString } from 'node:v8'

/** A V8 whose flags are frozen goes on as it is: what is set this way makes the program cheaper, never right. */
export function setV8Flag(flag: string): void {
  try {
    setFlagsFromString(flag)
  } catch {
    // Nothing is lost but time or memory.
  }
}

import { KernelError } from '../../src/lib/errors.ts'

/** The KernelError that the work fails with. */
export function errorOf(work: () => unknown): KernelError {
  try {
    work()
  } catch (error) {
    if (error instanceof KernelError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

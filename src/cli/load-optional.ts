/** A part of the program that an installation may leave out: undefined where it is not there. */
export function loadOptional<Module>(part: Promise<Module>): Promise<Module | undefined> {
  return part.catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
}

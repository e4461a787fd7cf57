// What the API server says, or why it does not.

import { messageOf } from '../../lib/errors.ts'
import { readApiObjects, type ReadObjects } from '../explain/read-known.ts'

export type ApiObjects = ReadObjects & { readonly server: string }

export interface ApiFact {
  /** Undefined: it was not asked, or did not answer. */
  readonly objects: ApiObjects | undefined
  /** Undefined: it was not asked, or did answer. */
  readonly error: string | undefined
}

/** Many thousands of pods take seconds. */
const PATIENCE_MS = 10_000

/** A cluster in trouble may have no API server that answers: the proxy is asked all the same. */
export async function readApi(kubeconfig: string, master: string): Promise<ApiFact> {
  if (kubeconfig === '' && master === '') return { objects: undefined, error: undefined }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS)
  })
  try {
    return { objects: await Promise.race([readApiObjects({ kubeconfig, master }), late]), error: undefined }
  } catch (error) {
    return { objects: undefined, error: messageOf(error) }
  } finally {
    clearTimeout(timer)
  }
}

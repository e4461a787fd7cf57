/** Bytes from the API server that are not what they should be. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

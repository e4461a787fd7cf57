/** Invalid bytes from the API server. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

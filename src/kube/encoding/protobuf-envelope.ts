// The envelope around every protobuf object of the API: four bytes of magic, then a runtime.Unknown message whose `raw`
// is the object.

import type { Buffer } from 'node:buffer'
import { DecodeError } from './decode-error.ts'
import type { ProtoReader } from './proto-reader.ts'

/** "k8s\0", little-endian. */
const MAGIC = 0x0073386b

export const MAGIC_LENGTH = 4

export function hasMagic(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= MAGIC_LENGTH && bytes.readUInt32LE(start) === MAGIC
}

/** Moves the reader from the magic to the first byte of the object, and its limit to the object's end. Returns its kind. */
export function openEnvelope(reader: ProtoReader): string {
  if (!hasMagic(reader.bytes, reader.pos, reader.limit)) {
    throw new DecodeError(`Cannot decode protobuf at offset ${reader.pos}: does not begin with "k8s" and a zero byte`)
  }
  reader.pos += MAGIC_LENGTH
  let kind = ''
  const end = reader.limit
  while (reader.pos < end) {
    switch (reader.field(end)) {
      case 1:
        kind = decodeKind(reader)
        break
      case 2: {
        const rawEnd = reader.enter()
        reader.reset(reader.bytes, reader.pos, rawEnd)
        return kind
      }
      default:
        reader.skip(end)
    }
  }
  reader.reset(reader.bytes, end, end)
  return kind
}

/** runtime.TypeMeta.kind */
export function decodeKind(reader: ProtoReader): string {
  let kind = ''
  for (const end = reader.enter(); reader.pos < end;) {
    if (reader.field(end) === 2) kind = reader.pooled()
    else reader.skip(end)
  }
  return kind
}

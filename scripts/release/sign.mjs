// Signatures with a key of the releaser: of files as `cosign sign-blob --key` makes them, of statements as DSSE has them.

import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A key on the curve that cosign uses. `passphrase`: of an encrypted file. */
export function readKey(file, passphrase) {
  let key
  try {
    key = createPrivateKey({ key: readFileSync(file), passphrase })
  } catch (error) {
    throw new Error(
      `Cannot read the key ${file}: ${error.message}; must be a private key as PEM (openssl ecparam -name prime256v1 -genkey), with its passphrase in RELEASE_KEY_PASSPHRASE if it is encrypted`,
      { cause: error },
    )
  }
  const curve = key.asymmetricKeyDetails?.namedCurve
  if (curve !== 'prime256v1') {
    throw new Error(
      `Cannot sign with ${file}: it is ${curve ?? key.asymmetricKeyType}, must be on the curve prime256v1`,
    )
  }
  return key
}

export function formatPublicKey(key) {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' })
}

export function signBlob(key, content) {
  return sign('sha256', content, key).toString('base64')
}

/** A line of JSON: what was signed is the payload with its type and both lengths. */
export function formatEnvelope(key, payloadType, value) {
  const payload = Buffer.from(JSON.stringify(value))
  const head = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `
  const sig = signBlob(key, Buffer.concat([Buffer.from(head), payload]))
  return `${JSON.stringify({ payloadType, payload: payload.toString('base64'), signatures: [{ sig }] })}\n`
}

// SHA-256 of short texts. Node's own takes several times as long for them: it makes an object of the C++ side for each, and
// a node with 10,000 services has 100,000 names made of hashes.

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
const ROUNDS = new Int32Array(64)
/** The same of the square roots of the first 8 primes (5.3.3). */
const INITIAL = new Int32Array(8)

for (let candidate = 2, found = 0; found < 64; candidate++) {
  let isPrime = true
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) isPrime = false
  if (!isPrime) continue
  if (found < 8) INITIAL[found] = fraction(candidate ** (1 / 2))
  ROUNDS[found++] = fraction(candidate ** (1 / 3))
}

function fraction(value: number): number {
  return ((value - Math.floor(value)) * 2 ** 32) | 0
}

const BLOCK = 64
const schedule = new Int32Array(64)
const state = new Int32Array(8)
let padded = new Uint8Array(4 * BLOCK)

/** The eight words of the digest. The array is valid until the next call. */
export function sha256Words(text: string): Int32Array {
  const length = encode(text)
  state.set(INITIAL)
  for (let start = 0; start < length; start += BLOCK) compress(start)
  return state
}

/** Writes the text as UTF-8 with the padding behind it; returns the length of both. */
function encode(text: string): number {
  const room = Math.ceil((text.length * 3 + 9) / BLOCK) * BLOCK
  if (padded.length < room) padded = new Uint8Array(room)
  let bytes = 0
  for (; bytes < text.length; bytes++) {
    const code = text.charCodeAt(bytes)
    if (code > 0x7f) break
    padded[bytes] = code
  }
  if (bytes < text.length) bytes = Buffer.from(padded.buffer).write(text, 'utf8')
  const length = Math.ceil((bytes + 9) / BLOCK) * BLOCK
  padded.fill(0, bytes, length)
  padded[bytes] = 0x80
  const bits = bytes * 8
  for (let i = 0; i < 4; i++) padded[length - 1 - i] = bits >>> (8 * i)
  return length
}

function compress(start: number): void {
  const w = schedule
  for (let i = 0; i < 16; i++) {
    const at = start + 4 * i
    w[i] = (padded[at]! << 24) | (padded[at + 1]! << 16) | (padded[at + 2]! << 8) | padded[at + 3]!
  }
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!
    const y = w[i - 2]!
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0
  }
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i]! + w[i]!) | 0
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  state[0] = (state[0]! + a) | 0
  state[1] = (state[1]! + b) | 0
  state[2] = (state[2]! + c) | 0
  state[3] = (state[3]! + d) | 0
  state[4] = (state[4]! + e) | 0
  state[5] = (state[5]! + f) | 0
  state[6] = (state[6]! + g) | 0
  state[7] = (state[7]! + h) | 0
}

/** No vowels and no digits that look like letters, so that no words arise by chance. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
const longestPrefix = 63 - suffixLength

export function randomSuffix(): string {
  let suffix = ''
  for (let i = 0; i < suffixLength; i++) suffix += alphabet[Math.floor(Math.random() * alphabet.length)]
  return suffix
}

/** `whoami-` becomes `whoami-8fpqp`. */
export function generateName(prefix: string): string {
  return prefix.slice(0, longestPrefix) + randomSuffix()
}

/** The digits of a hash in the same letters, as they are written into names. */
export function encodeSafe(digits: string): string {
  return digits.replace(/./g, (digit) => alphabet[digit.charCodeAt(0) % alphabet.length] ?? '')
}

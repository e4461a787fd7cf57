// Takes secrets out of text that people send to each other.

const LEFT_OUT = '<left out>'

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?(-----END \1-----|$)/g, LEFT_OUT],
  // JSON web tokens, such as those of service accounts.
  [/\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/g, LEFT_OUT],
  // Bootstrap tokens.
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, LEFT_OUT],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${LEFT_OUT}`],
  // The password of a URL.
  [/(\w:\/\/[^\s/:@"']*):[^\s/@"']+@/g, `$1:${LEFT_OUT}@`],
  // Fields of kubeconfigs, and others of such names. The path of a file with a token is no secret.
  [
    /((?:^|[\s"'{,\\-])(?:[\w-]*(?:token|password|passwd|secret|api-?key|private-?key)|client-key-data|client-certificate-data|[\w-]*_(?:TOKEN|PASSWORD|SECRET|KEY))\\?["']?\s*[:=]\s*)(\\?"[^"\n]*"|\\?'[^'\n]*'|[^\s,"'}]+)/gi,
    `$1"${LEFT_OUT}"`,
  ],
]

export function redact(text: string): string {
  let clean = text
  for (const [pattern, by] of PATTERNS) clean = clean.replace(pattern, by)
  return clean
}

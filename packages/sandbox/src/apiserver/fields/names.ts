// What names, labels and their like may look like. Each function says what is wrong, or undefined.

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/
const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const portName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
/** Printable, and not the sign that ends the name. */
const envName = /^[ -<>-~]+$/
const configKey = /^[-._a-zA-Z0-9]+$/

const labelRule =
  "a lowercase RFC 1123 label is made of lower case letters, digits and '-', and begins and ends with a letter or digit (e.g. 'my-name' or '123-abc')"
const subdomainRule =
  "a lowercase RFC 1123 subdomain is made of lower case letters, digits, '-' and '.', and begins and ends with a letter or digit (e.g. 'example.com')"

/** `web-1`: services, namespaces, containers. */
export function dnsLabelProblem(value: string): string | undefined {
  if (value.length > 63) return 'must be no more than 63 characters'
  return label.test(value) ? undefined : labelRule
}

/** `node-1.example.com`: most objects' names. */
export function dnsSubdomainProblem(value: string): string | undefined {
  if (value.length > 253) return 'must be no more than 253 characters'
  return value.split('.').every((part) => label.test(part)) ? undefined : subdomainRule
}

/** `app`, `example.com/app`: keys of labels and annotations. */
export function qualifiedNameProblem(value: string): string | undefined {
  const parts = value.split('/')
  if (parts.length > 2) return "must be a name, or a DNS subdomain, '/' and a name (e.g. 'example.com/my-name')"
  const name = parts.at(-1) ?? ''
  if (parts.length === 2) {
    const problem = parts[0] === '' ? 'prefix part must be non-empty' : dnsSubdomainProblem(parts[0] ?? '')
    if (problem !== undefined) return problem.startsWith('prefix') ? problem : `prefix part ${problem}`
  }
  if (name === '') return 'name part must be non-empty'
  if (name.length > 63) return 'name part must be no more than 63 characters'
  if (qualifiedPart.test(name)) return undefined
  return "name part is made of letters, digits, '-', '_' or '.', and begins and ends with a letter or digit (e.g. 'MyName' or 'my.name')"
}

export function labelValueProblem(value: string): string | undefined {
  if (value.length > 63) return 'must be no more than 63 characters'
  if (labelValue.test(value)) return undefined
  return "a valid label is empty, or made of letters, digits, '-', '_' or '.', and begins and ends with a letter or digit (e.g. 'MyValue' or '12345')"
}

/** The name of a port that a targetPort may refer to. */
export function portNameProblem(value: string): string | undefined {
  if (value.length > 15) return 'must be no more than 15 characters'
  if (!portName.test(value) || value.includes('--')) {
    return "must be made of lower case letters, digits and single '-', and begin and end with a letter or digit"
  }
  return /[a-z]/.test(value) ? undefined : 'must contain at least one letter (a-z)'
}

export function portProblem(value: number): string | undefined {
  return value >= 1 && value <= 65535 ? undefined : 'must be between 1 and 65535, inclusive'
}

export function envNameProblem(value: string): string | undefined {
  return envName.test(value) ? undefined : "must be made of printable ASCII characters other than '='"
}

export function configKeyProblem(value: string): string | undefined {
  if (value.length > 253) return 'must be no more than 253 characters'
  if (value === '.' || value.startsWith('..')) return `must not be or begin with '${value === '.' ? '.' : '..'}'`
  return configKey.test(value) ? undefined : "must be made of letters, digits, '-', '_' or '.' (e.g. 'key.name')"
}

// What --version says. Tools that parse the line of kube-proxy find the Kubernetes version that we are compatible with;
// what is behind the plus is build metadata, which does not count when versions are compared.

import { compatibleWith } from '../config/version.ts'

/** The version of this program; a test holds it to package.json. */
export const programVersion = '0.1.0'

export const gitVersion = `v${compatibleWith.major}.${compatibleWith.minor}.${compatibleWith.patch}+ts.${programVersion}`

/** The output for a value of `--version`, or undefined when the flag asks for none. */
export function formatVersion(flag: string | undefined): string | undefined {
  if (flag === 'true') return `Kubernetes ${gitVersion}\n`
  if (flag !== 'raw') return undefined
  const fields = {
    Major: String(compatibleWith.major),
    Minor: String(compatibleWith.minor),
    GitVersion: gitVersion,
    NodeVersion: process.version,
    Platform: `${process.platform}/${process.arch}`,
  }
  const text = Object.entries(fields).map(([name, value]) => `${name}:${JSON.stringify(value)}`)
  return `version.Info{${text.join(', ')}}\n`
}

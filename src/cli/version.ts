// What --version says. Tools that parse the line of kube-proxy find the Kubernetes version that we are compatible with;
// what is behind the plus is build metadata, which does not count when versions are compared.

import { compatibleWith } from '../config/version.ts'
import { programVersion } from '../lib/program-version.ts'
import { buildOrigin, formatOrigin } from './build-info.ts'

const { major, minor, patch } = compatibleWith

/** `v1.37.0+ts.0.1.0.g0123456789ab` */
export const gitVersion = `v${major}.${minor}.${patch}+ts.${programVersion}${formatOrigin(buildOrigin)}`

/** The output for a value of `--version`, or undefined when the flag asks for none. */
export function formatVersion(flag: string | undefined): string | undefined {
  if (flag === 'true') return `Kubernetes ${gitVersion}\n`
  if (flag !== 'raw') return undefined
  const fields = {
    Major: String(major),
    Minor: String(minor),
    GitVersion: gitVersion,
    GitCommit: buildOrigin.commit,
    GitTreeState: buildOrigin.treeState,
    BuildDate: buildOrigin.date,
    NodeVersion: process.version,
    Platform: `${process.platform}/${process.arch}`,
  }
  const text = Object.entries(fields).map(([name, value]) => `${name}:${JSON.stringify(value)}`)
  return `version.Info{${text.join(', ')}}\n`
}

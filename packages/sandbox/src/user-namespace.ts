// Why a kernel refuses user namespaces, and what would change its mind.

import { readFileSync } from 'node:fs'

/** A setting that forbids them here, set otherwise; undefined when none does. */
export function userNamespaceRemedy(): string | undefined {
  return switches.find(({ file, forbids }) => {
    const value = readSetting(file)
    return value !== undefined && forbids(value)
  })?.remedy
}

const switches: readonly { file: string; forbids: (value: number) => boolean; remedy: string }[] = [
  {
    file: 'user/max_user_namespaces',
    forbids: (value) => value === 0,
    remedy: 'sysctl user.max_user_namespaces=10000',
  },
  {
    // Debian before 11, and hardened kernels.
    file: 'kernel/unprivileged_userns_clone',
    forbids: (value) => value === 0,
    remedy: 'sysctl kernel.unprivileged_userns_clone=1',
  },
  {
    // Ubuntu since 23.10.
    file: 'kernel/apparmor_restrict_unprivileged_userns',
    forbids: (value) => value !== 0,
    remedy: 'sysctl kernel.apparmor_restrict_unprivileged_userns=0',
  },
]

function readSetting(file: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/sys/${file}`, 'utf8'))
  } catch {
    return undefined
  }
}

// Which parts of the kernel are there, found without asking for them: a question can make the kernel load the module.

import { existsSync, readFileSync } from 'node:fs'
import { release } from 'node:os'

/**
 * `can be loaded`: it is installed, and the kernel loads it when it is asked for it. `unknown`: the list of installed modules is
 * not here (a container without /lib/modules, or a kernel without modules), so that only asking the kernel would show it.
 */
export type ModuleState = 'loaded' | 'built in' | 'can be loaded' | 'missing' | 'unknown'

/** What is installed, by name with underscores; undefined when there is no list. */
export interface InstalledModules {
  readonly builtIn: ReadonlySet<string>
  readonly loadable: ReadonlySet<string>
}

export interface ModuleEvidence {
  /** Whether /sys/module has it: it is loaded, or built in and has parameters. */
  readonly isInSys: (name: string) => boolean
  readonly installed: InstalledModules | undefined
}

export function moduleState(name: string, { isInSys, installed }: ModuleEvidence): ModuleState {
  if (installed?.builtIn.has(name) === true) return 'built in'
  if (isInSys(name)) return 'loaded'
  if (installed === undefined) return 'unknown'
  return installed.loadable.has(name) ? 'can be loaded' : 'missing'
}

/** Module names of `modules.builtin` (a path per line) or `modules.dep` (`path: paths it needs`). */
export function parseModuleList(text: string): Set<string> {
  const names = new Set<string>()
  for (const line of text.split('\n')) {
    const file = /([^/:]+)\.ko(?:\.\w+)?(?::|$)/.exec(line.split(' ', 1)[0]!)?.[1]
    if (file !== undefined) names.add(file.replaceAll('-', '_'))
  }
  return names
}

let installed: { readonly modules: InstalledModules | undefined } | undefined

export function readModuleState(name: string): ModuleState {
  installed ??= { modules: readInstalledModules() }
  return moduleState(name, {
    isInSys: (module) => existsSync(`/sys/module/${module}`),
    installed: installed.modules,
  })
}

function readInstalledModules(): InstalledModules | undefined {
  for (const root of ['/lib/modules', '/usr/lib/modules']) {
    const folder = `${root}/${release()}`
    try {
      return {
        loadable: parseModuleList(readFileSync(`${folder}/modules.dep`, 'utf8')),
        builtIn: parseModuleList(readFileSync(`${folder}/modules.builtin`, 'utf8')),
      }
    } catch {
      // Not there, or only a part of it: then nothing can be said.
    }
  }
  return undefined
}

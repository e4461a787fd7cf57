// Rehearsals of the golden inputs, and the programs that read them.

import { execFileSync } from 'node:child_process'
import { completeConfiguration } from '../../src/config/complete.ts'
import { applyDefaults } from '../../src/config/defaults.ts'
import { settle } from '../../src/config/settle.ts'
import type { Family } from '../../src/lib/ip.ts'
import { modeNamed, modes } from '../../src/modes/all.ts'
import { scriptReaders, type Rehearsal, type RehearseOptions } from '../../src/modes/rehearsal.ts'
import { nodeAddresses } from './addresses.ts'
import { goldenNode } from './golden-tables.ts'
import { viewsFromYaml } from './planned-views.ts'

export interface GoldenRehearsal {
  readonly mode: string
  readonly family: Family
  readonly kernel: RehearseOptions['kernel']
}

export async function rehearseGolden(name: string, { mode, family, kernel }: GoldenRehearsal): Promise<Rehearsal> {
  const node = goldenNode(family)
  const { config } = completeConfiguration({ ...settle(applyDefaults({})), mode }, modes)
  const views = viewsFromYaml(new URL(`../golden/${name}/input.yaml`, import.meta.url).pathname, node)
  const machineAddresses = ['127.0.0.1', '::1', ...nodeAddresses]
  return (await modeNamed(mode).load()).rehearse({ config, node, views, machineAddresses, kernel })
}

/** Hands each script to its program. `rename` for an iptables of another backend. */
export function loadScripts({ scripts }: Rehearsal, rename: (program: string) => string = (program) => program): void {
  for (const { program, text } of scripts) {
    const [command = '', ...args] = scriptReaders[program].split(' ')
    if (text !== '') execFileSync(rename(command), args, { input: text, stdio: ['pipe', 'pipe', 'pipe'] })
  }
}

/** What is left to do, line by line. */
export function commandsOf({ scripts }: Rehearsal): string[] {
  return scripts.flatMap(({ text }) => text.split('\n').filter((line) => line !== ''))
}

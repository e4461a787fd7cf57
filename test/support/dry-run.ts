// Dry runs of the golden inputs, and the programs that read them.

import { execFileSync } from 'node:child_process'
import { completeConfiguration } from '../../src/config/complete.ts'
import { applyDefaults } from '../../src/config/defaults.ts'
import { settle } from '../../src/config/settle.ts'
import type { Family } from '../../src/lib/ip.ts'
import { modeNamed, modes } from '../../src/modes/all.ts'
import { scriptReaders, type DryRun, type DryRunOptions } from '../../src/modes/dry-run.ts'
import { nodeAddresses } from './addresses.ts'
import { goldenNode } from './golden-tables.ts'
import { viewsFromYaml } from './planned-views.ts'

export interface GoldenDryRun {
  readonly mode: string
  readonly family: Family
  readonly kernel: DryRunOptions['kernel']
}

export async function dryRunGolden(name: string, { mode, family, kernel }: GoldenDryRun): Promise<DryRun> {
  const node = goldenNode(family)
  const { config } = completeConfiguration({ ...settle(applyDefaults({})), mode }, modes)
  const views = viewsFromYaml(new URL(`../golden/${name}/input.yaml`, import.meta.url).pathname, node)
  const machineAddresses = ['127.0.0.1', '::1', ...nodeAddresses]
  return (await modeNamed(mode).load()).dryRun!({ config, node, views, machineAddresses, kernel })
}

/** Hands each script to its program. `rename` for an iptables of another backend. */
export function loadScripts({ scripts }: DryRun, rename: (program: string) => string = (program) => program): void {
  for (const { program, text } of scripts) {
    const [command = '', ...args] = scriptReaders[program].split(' ')
    if (text !== '') execFileSync(rename(command), args, { input: text, stdio: ['pipe', 'pipe', 'pipe'] })
  }
}

/** What is left to do, line by line. */
export function commandsOf({ scripts }: DryRun): string[] {
  return scripts.flatMap(({ text }) => text.split('\n').filter((line) => line !== ''))
}

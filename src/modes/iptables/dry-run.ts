// What the iptables mode would program.

import { hasCounter } from '../../nfacct/counters.ts'
import { Iptables } from '../../iptables/driver.ts'
import { probeIptables } from '../../iptables/probe.ts'
import { hasRandomFully } from '../../iptables/programs.ts'
import { silentLogger } from '../../lib/log.ts'
import { restoreProgram, type DryRun, type DryRunOptions } from '../dry-run.ts'
import { settingFiles } from '../../system/setting-files.ts'
import { invalidPackets } from './host-setup.ts'
import { COUNTERS } from './plan/names.ts'
import { iptablesPlanner } from './plan/planner.ts'
import { type IptablesSettings, opensLocalhost } from './plan/settings.ts'
import { type IptablesDriver, IptablesProgrammer } from './programmer.ts'

export async function dryRunIptables(options: DryRunOptions): Promise<DryRun> {
  const { node, views } = options
  const { settings, driver } = options.kernel === 'empty' ? elsewhere(options) : await here(options)
  const texts: string[] = []
  const programmer = new IptablesProgrammer({
    planner: iptablesPlanner(settings),
    driver: {
      backend: driver.backend,
      read: () => driver.read(),
      restore: (text) => Promise.resolve(void texts.push(...text)),
      close() {},
    },
    log: silentLogger,
    counts: { rules() {}, restoreFailed() {} },
    onRefused() {},
  })
  await programmer.syncAll(node, views)
  const remarks = opensLocalhost(node, settings)
    ? ['Node ports on loopback addresses also take the kernel setting net.ipv4.conf.all.route_localnet=1']
    : []
  return { scripts: [{ program: restoreProgram(node.family), text: texts.join('') }], remarks }
}

type Kernel = { readonly settings: IptablesSettings; readonly driver: Pick<IptablesDriver, 'backend' | 'read'> }

/** A machine with an iptables of today, and without counters of nfacct. */
function elsewhere({ config }: DryRunOptions): Kernel {
  return {
    settings: {
      localhostNodePorts: config.iptables.localhostNodePorts ? 'allowed' : 'closed',
      invalidPackets: config.conntrack.tcpBeLiberal ? 'keep' : 'drop',
      masqueradePorts: 'fully',
      counters: new Set(),
    },
    driver: { backend: 'nft', read: () => Promise.resolve(new Map()) },
  }
}

async function here({ config, node }: DryRunOptions): Promise<Kernel> {
  const { programs } = await probeIptables([node.family])
  return {
    settings: {
      localhostNodePorts: config.iptables.localhostNodePorts ? 'allowed' : 'closed',
      invalidPackets: invalidPackets(settingFiles, config.conntrack.tcpBeLiberal),
      masqueradePorts: hasRandomFully(programs) ? 'fully' : 'no',
      // The proxy makes those that are missing, where the kernel can.
      counters: new Set(Object.values(COUNTERS).filter(hasCounter)),
    },
    driver: new Iptables({ programs, family: node.family, onContention: () => {} }),
  }
}

// Tests that may be skipped, and where. A skip that no entry allows fails the run of scripts/test.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { networkInterfaces } from 'node:os'

const isRoot = process.getuid?.() === 0
const hasIpvs = existsSync('/proc/net/ip_vs')
const hasIpv6 = networkInterfaces().lo?.some(({ address }) => address === '::1') ?? false
const asNobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups']
const hasProgram = (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0
const hasApt = hasProgram('apt-get')
const hasChromium = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'].some(hasProgram)
const hasUserNamespaces =
  spawnSync('setpriv', [...asNobody, 'unshare', '--user', '--map-root-user', '--net', 'true']).status === 0

/**
 * `project` and `test` are patterns of what is skipped, `reason` one of what it says itself. `isExpected` tells whether the
 * entry applies to this machine: elsewhere it allows nothing, and here it is told when it matched nothing. `why` is for the
 * reader: what would have to change for the test to run, or where it does run.
 */
export const expectedSkips = [
  {
    project: /./,
    test: /^(more than )?\d+ tests of the project /,
    reason: /^needs root$/,
    isExpected: !isRoot,
    why: 'network namespaces, nftables and User Mode Linux take root',
  },
  {
    project: /^uml$/,
    test: /^(more than )?\d+ tests of the project /,
    reason: /^User Mode Linux needs Linux on x86_64$/,
    isExpected: isRoot && process.arch !== 'x64',
    why: 'there is no such kernel for other processors',
  },
  {
    project: /^e2e$/,
    test: /^(the rules (of the Go kube-proxy|that kube-proxy leaves)|kube-proxy still runs) /,
    reason: /^needs GO_KUBE_PROXY$/,
    isExpected: isRoot && process.env.GO_KUBE_PROXY === undefined,
    why: 'the Go program is no part of this repository, and CI cannot build it; its rules are golden files, and recordings in test/e2e/fixtures',
  },
  {
    project: /^e2e$/,
    test: /^systemd finds nothing wrong /,
    reason: /^no systemd-analyze$/,
    isExpected: isRoot && spawnSync('systemd-analyze', ['--version']).status !== 0,
    why: 'the package systemd has it',
  },
  {
    project: /^unit$/,
    test: /^(the plan of the \w+ mode|explain in mode \w+)/,
    reason: /^\w+ does not promise it$/,
    isExpected: true,
    why: 'test/conformance/modes.ts tells which mode promises what',
  },
  {
    project: /^(unit|live)$/,
    test: /./,
    reason: /^no reason given$/,
    isExpected: !hasIpv6,
    why: 'this machine has no IPv6, not even on loopback',
  },
  {
    project: /^sandbox$/,
    test: /^a user without root > has a sandbox in a user namespace$/,
    reason: /^user namespaces are not allowed here: /,
    isExpected: isRoot && !hasUserNamespaces,
    why: 'an administrator, or the container that this is, does not allow them to users',
  },
  {
    project: /^release$/,
    test: /./,
    reason: /^npm cannot fetch packages: /,
    isExpected: isRoot && spawnSync('npm', ['ping', '--fetch-retries=0']).status !== 0,
    why: 'other versions of Node are packages of npm',
  },
  {
    project: /^sandbox$/,
    test: /makes of the overlay of the mode \w+ what the tests make of it$/,
    reason: /^kubectl is older than 1\.21$/,
    isExpected: isRoot && spawnSync('kubectl', ['kustomize', 'deploy/overlays/iptables']).status !== 0,
    why: 'the kubectl of Debian 12 does not know components of kustomize',
  },
  {
    project: /^release$/,
    test: /serves under the default profile of AppArmor$/,
    reason: /^this kernel has no AppArmor$/,
    isExpected: isRoot && !existsSync('/sys/kernel/security/apparmor/profiles'),
    why: 'the kernel was built without it, or it is off',
  },
  {
    project: /^(e2e|packet-flow|sandbox|release)$/,
    test: /ipvs/,
    reason: /^this kernel has no IPVS$|^Cannot use proxy mode ipvs: /,
    isExpected: isRoot && !hasIpvs,
    why: 'the project uml runs the same on a kernel with IPVS; files of e2e run there by node test/uml/run.mjs -- npx vitest run',
  },
  {
    project: /^ui$/,
    test: /./,
    reason: /^needs Chromium$/,
    isExpected: isRoot && !hasChromium && !hasApt,
    why: 'scripts/chromium installs one on Debian alone',
  },
  {
    project: /^kernel$/,
    test: /^on a kernel without IPVS /,
    reason: /^needs root$/,
    isExpected: isRoot && hasIpvs,
    why: 'this kernel has IPVS',
  },
]

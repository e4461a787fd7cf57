// How the proxy was installed here, so that the next command is one that exists on this machine.

import { existsSync } from 'node:fs'
import { findProxies } from '../check/find-proxies.ts'
import { readText } from '../read-text.ts'
import type { Installation } from './facts.ts'

const UNITS = ['kube-proxy-ts.service', 'kube-proxy.service'] as const
const UNIT_FOLDERS = ['/etc/systemd/system', '/run/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system']
const KUBELET = '/var/lib/kubelet'

/** `node`: its name in the cluster, where it is known. */
export function findInstallation(node: string | undefined): Installation {
  const [proxy] = findProxies()
  if (proxy !== undefined) return ofProcess(proxy.pid, node)
  const unit = UNITS.find((name) => UNIT_FOLDERS.some((folder) => existsSync(`${folder}/${name}`)))
  if (unit !== undefined) return ofUnit(unit)
  if (existsSync(KUBELET)) return ofPods(node)
  const list = 'ps -e -o pid,etime,args | grep kube-proxy'
  return { logs: list, status: list }
}

function ofProcess(pid: number, node: string | undefined): Installation {
  const cgroup = readText(`/proc/${pid}/cgroup`)
  const [, unit] = /\/([^/\n]+\.service)$/m.exec(cgroup) ?? []
  if (/kubepods/.test(cgroup)) return ofPods(node)
  if (unit !== undefined && unit.startsWith('kube-proxy')) return ofUnit(unit)
  const show = `ps -o pid,stat,etime,args -p ${pid}`
  return { logs: show, status: show }
}

function ofUnit(unit: string): Installation {
  return { logs: `journalctl -u ${unit} --since -5min`, status: `systemctl status ${unit}` }
}

/** Of whichever DaemonSet: it is found by the node, not by a label. */
function ofPods(node: string | undefined): Installation {
  const of = `--field-selector spec.nodeName=${node ?? '$(hostname)'}`
  const list = `kubectl get pods --all-namespaces ${of} -o wide | grep kube-proxy`
  return { logs: `${list}    # then: kubectl -n NAMESPACE logs POD`, status: list }
}

// IPVS state as text: what `ipvsadm -Sn` prints, and what ipvsadm -R reads.

import { joinHostPort } from '../lib/ip.ts'
import { SCHEDULER_FLAGS, type DestinationId, type IpvsOp, type PlannedServer, type ServerId } from './types.ts'

/** Servers in order of protocol, address and port, each with its destinations. */
export function formatServers(servers: Iterable<PlannedServer>): string {
  const blocks = Array.from(servers, (planned) => formatServer(planned))
  return blocks.sort().join('')
}

export function formatServer({ server, destinations }: PlannedServer): string {
  const lines = destinations.map((destination) => `${formatOp({ op: 'addDestination', server, destination })}\n`).sort()
  return `${formatOp({ op: 'addServer', server })}\n${lines.join('')}`
}

/** A line that `ipvsadm -R` reads, and the arguments of an ipvsadm to the same end. */
export function formatOp(op: IpvsOp): string {
  const where = formatServerId(op.server)
  switch (op.op) {
    case 'addServer':
    case 'setServer': {
      const { scheduler, schedulerFlags, persistenceSeconds } = op.server
      const flags = formatFlags(scheduler, schedulerFlags)
      const persistence = persistenceSeconds === undefined ? '' : ` -p ${persistenceSeconds}`
      return `${op.op === 'addServer' ? '-A' : '-E'} ${where} -s ${scheduler}${flags}${persistence}`
    }
    case 'deleteServer':
      return `-D ${where}`
    case 'addDestination':
    case 'setDestination': {
      const command = op.op === 'addDestination' ? '-a' : '-e'
      return `${command} ${where} -r ${formatDestination(op.destination)} -m -w ${op.destination.weight}`
    }
    case 'deleteDestination':
      return `-d ${where} -r ${formatDestination(op.destination)}`
  }
}

const PROTOCOL_OPTIONS = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' } as const

/** `-t 10.0.0.1:80` */
export function formatServerId({ protocol, address, port }: ServerId): string {
  return `${PROTOCOL_OPTIONS[protocol]} ${joinHostPort(address, port)}`
}

/** For messages: `add destination 10.1.0.1:8080 to virtual server -t 10.0.0.1:80`. */
export function describeOp(op: IpvsOp): string {
  const where = `virtual server ${formatServerId(op.server)}`
  switch (op.op) {
    case 'addServer':
      return `add ${where} with scheduler ${op.server.scheduler}`
    case 'setServer':
      return `change ${where}`
    case 'deleteServer':
      return `delete ${where}`
    case 'addDestination':
      return `add destination ${formatDestination(op.destination)} to ${where}`
    case 'setDestination':
      return `change destination ${formatDestination(op.destination)} of ${where}`
    case 'deleteDestination':
      return `delete destination ${formatDestination(op.destination)} of ${where}`
  }
}

function formatDestination({ address, port }: DestinationId): string {
  return joinHostPort(address, port)
}

/** ipvsadm has names for the flags of two schedulers. */
function formatFlags(scheduler: string, flags: number): string {
  const prefix = scheduler === 'sh' || scheduler === 'mh' ? `${scheduler}-` : undefined
  const names = Object.entries(SCHEDULER_FLAGS)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name], i) => (prefix === undefined || name === 'third' ? `flag-${i + 1}` : `${prefix}${name}`))
  return names.length === 0 ? '' : ` -b ${names.join(',')}`
}

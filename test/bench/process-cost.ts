// What a process has used, as /proc tells.

import { readFileSync } from 'node:fs'

const CLOCK_TICKS = 100

/** Of a process, or a thread (`PID/task/TID`), and of those of its children that have ended. */
export function cpuOf(pid: number | string): { readonly ownMs: number; readonly childrenMs: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ').map(Number)
  const ms = (at: number) => ((fields[at]! + fields[at + 1]!) / CLOCK_TICKS) * 1000
  return { ownMs: ms(11), childrenMs: ms(13) }
}

export function rssKbOf(pid: number): number {
  return statusOf(pid, 'VmRSS')
}

/** The most that it ever had. */
export function peakKbOf(pid: number): number {
  return statusOf(pid, 'VmHWM')
}

function statusOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}

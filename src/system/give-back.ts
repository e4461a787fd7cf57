// Returns memory to the machine that this process does not need any more.
//
// After a start, most of its memory is what only the start needed: dead objects, memory that libc keeps for later, and pages of
// Node's own file (a hundred megabytes).

import { readFileSync, readlinkSync } from 'node:fs'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { tryCall } from './libc.ts'
import { setV8Flag } from './v8-flag.ts'

const MADV_DONTNEED = 4

/** Collecting stops everything else for about two milliseconds per megabyte. Larger heaps are left to V8, which takes its time. */
const LARGEST_COLLECTED = 48 << 20

/**
 * Settings of V8's garbage collection. On the command line, any of them would make Node 20 and 22 compile Node's own modules at each
 * start instead of using what they have compiled. docs/adr/0014-tricks-with-proof.md has what each saves.
 *
 * - V8 collects when its heap has grown by 60 percent. By default it judges by the time that collecting takes.
 * - All objects begin as young ones, which cost little when they die. V8 would guess from earlier objects which will stay; at a start
 *   it guesses wrong, and makes a million elements on their way to the kernel as old ones.
 * - The thread that fills the nursery collects it: waking others takes more time than they save.
 */
export function collectInTime(): void {
  setV8Flag('--heap-growing-percent=60')
  setV8Flag('--no-allocation-site-pretenuring')
  setV8Flag('--no-parallel-scavenge')
  keepNurserySmall()
}

/**
 * Keeps the nursery of each thread as small as it is. Call it again when a thread has started: V8 has one such setting for all threads,
 * and resets it to 2 when it makes the heap of a new one.
 */
export function keepNurserySmall(): void {
  setV8Flag('--semi-space-growth-factor=1')
}

/** Does what can be done here: a V8 whose flags are frozen, a libc that is not glibc, a process without /proc go on as they are. */
export function giveBackMemory(): void {
  for (const step of [collectGarbage, trimAllocator, forgetProgramPages]) {
    try {
      step()
    } catch {
      // Nothing is lost but memory.
    }
  }
}

type Collect = (options?: object) => void

function collectGarbage(): void {
  if (getHeapStatistics().used_heap_size > LARGEST_COLLECTED) return
  // Not a flag for the command line: see collectInTime().
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  // What is not known to V8 before Node 22 means something else there: a look at the youngest objects.
  if (Number(process.versions.node.split('.')[0]) < 22) collect()
  else collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

function trimAllocator(): void {
  tryCall('malloc_trim', 0)
}

/** The pages of Node's file are in the kernel's cache: those that are used again are back without being read again. */
function forgetProgramPages(): void {
  const program = readlinkSync('/proc/self/exe')
  for (const { start, length } of untouchedMappings(readFileSync('/proc/self/smaps', 'latin1'), program)) {
    // Refused where memory is locked; then it stays.
    tryCall('madvise', start, length, MADV_DONTNEED)
  }
}

interface Mapping {
  readonly start: bigint
  readonly length: bigint
}

/**
 * Where the file is mapped for reading or running, and no page differs from the file. Pages that do (the linker's, a debugger's)
 * are in no file: without them the program would end.
 */
export function untouchedMappings(smaps: string, file: string): Mapping[] {
  const mappings: Mapping[] = []
  for (const text of smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [0-9a-f]+ \S+ \d+ +(.*)\n/.exec(text)
    if (head?.[3] !== file || !/^Anonymous: +0 kB$/m.test(text)) continue
    const start = BigInt(`0x${head[1]}`)
    mappings.push({ start, length: BigInt(`0x${head[2]}`) - start })
  }
  return mappings
}

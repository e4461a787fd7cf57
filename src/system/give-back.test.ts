import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { giveBackMemory, untouchedMappings } from './give-back.ts'

const mapping = (head: string, anonymous: number) =>
  `${head}\nSize:               1234 kB\nRss:                 100 kB\nPrivate_Dirty:         0 kB\nAnonymous:      ${String(anonymous).padStart(8)} kB\nVmFlags: rd mr mw me\n`

test('only what is as in the file, and of this file, is forgotten', () => {
  const smaps = [
    mapping('00400000-00b4a000 r--p 00000000 fe:00 1074313                            /usr/bin/node', 0),
    mapping('00b4a000-02748000 r-xp 0074a000 fe:00 1074313                            /usr/bin/node', 0),
    // The linker wrote here, and closed the door behind it.
    mapping('02748000-05d75000 r--p 02348000 fe:00 1074313                            /usr/bin/node', 8),
    mapping('05d75000-05d94000 rw-p 05974000 fe:00 1074313                            /usr/bin/node', 0),
    mapping('7fc3a0000000-7fc3a02db000 r-xp 00000000 00:00 0 ', 0),
    mapping('7fc3d0600000-7fc3d0700000 r-xp 00028000 fe:00 1075000                    /usr/lib/libc.so.6', 0),
    mapping('7fc3d0800000-7fc3d0900000 r-xs 00000000 fe:00 1074313                    /usr/bin/node', 0),
  ].join('')
  expect(untouchedMappings(smaps, '/usr/bin/node')).toEqual([
    { start: 0x400000n, length: 0x74a000n },
    { start: 0xb4a000n, length: 0x1bfe000n },
  ])
})

test('a process has fewer pages of files afterwards, and goes on', () => {
  const filePages = () => Number(/^RssFile:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'latin1'))![1])
  const before = filePages()
  giveBackMemory()
  expect(filePages()).toBeLessThan(before)
  giveBackMemory()
})

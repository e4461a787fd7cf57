import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { configurationFromFlags } from '../cli/apply-flags.ts'
import { parseFlags } from '../cli/parse-flags.ts'
import { silentLogger } from '../lib/log.ts'
import { modes } from '../modes/all.ts'
import { runInitOnly } from './init-only.ts'

const leaveTheKernelAlone = [
  '--conntrack-max-per-core=0',
  '--conntrack-tcp-timeout-established=0s',
  '--conntrack-tcp-timeout-close-wait=0s',
]

// It ends at once: a score of its own would only bring a warning where it may not be changed.
test('leaves its own OOM score alone', async () => {
  const score = () => readFileSync('/proc/self/oom_score_adj', 'utf8')
  const before = score()
  const { given } = parseFlags(['--proxy-mode=nftables', '--oom-score-adj=1000', ...leaveTheKernelAlone])
  const { loaded } = configurationFromFlags(given, modes)
  await runInitOnly({ ...loaded, log: silentLogger })
  expect(score()).toBe(before)
})

import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Against hanging alone: what a test waits for has limits of its own, which follow the load of the machine. */
const hangsAfterMs = 300_000

const live = '{src,packages,test}/**/*.live.test.ts'

export default defineConfig({
  test: {
    // What is transformed once is read from there afterwards.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest' },
    projects: [
      {
        // Pure tests: no root, no kernel, no processes, no network.
        test: {
          name: 'unit',
          include: [
            '{src,packages}/**/*.test.ts',
            'test/{architecture,conformance,golden,support}/*.test.ts',
            'scripts/*.test.mjs',
          ],
          exclude: ['{src,packages}/**/growth.test.ts', live],
          pool: 'threads',
          isolate: false,
          maxWorkers: availableParallelism(),
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // It imports JSON in a way that Node does not know.
          deps: { optimizer: { ssr: { enabled: true, include: ['@actions/workflow-parser'] } } },
        },
      },
      {
        // Tests that start processes or talk over loopback, without root. Much of it is waiting.
        test: {
          name: 'live',
          include: [live],
          pool: 'threads',
          isolate: false,
          maxWorkers: availableParallelism() + 2,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // How cost grows with the size of an object. Pure, too, but they measure, and that takes its time.
        test: {
          name: 'growth',
          include: ['{src,packages}/**/growth.test.ts'],
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // Tests that program a real kernel, each file in a network namespace of its own.
        test: {
          name: 'kernel',
          include: ['test/kernel/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // The same, on the kernel with IPVS: node test/uml/run.mjs -- npx vitest run --project uml
        test: {
          name: 'uml',
          include: ['test/uml/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          // One slow processor: more at once would only wait for each other.
          maxConcurrency: 5,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // The built program against an API server, with real packets.
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: ['test/e2e/packet-flow-*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // What goes wrong around the program, in every mode, two files at a time: much of it is waiting.
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // What is shipped: the package of npm on every Node, the image.
        test: {
          name: 'release',
          include: ['test/release/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // The packet-flow table in every mode, two modes at a time: most of it is waiting for packets that do not come.
        test: {
          name: 'packet-flow',
          include: ['test/e2e/packet-flow-*.test.ts'],
          pool: 'forks',
          maxWorkers: 2,
          maxConcurrency: 24,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // The sandbox as a user starts it, in a network namespace that stands for the machine.
        test: {
          name: 'sandbox',
          include: ['test/sandbox/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
      {
        // The page of the sandbox in a real Chromium, two files at a time: each has a machine, a sandbox and a browser of its own.
        test: {
          name: 'ui',
          include: ['test/ui/**/*.test.ts'],
          pool: 'forks',
          maxWorkers: 2,
          testTimeout: hangsAfterMs,
          hookTimeout: hangsAfterMs,
        },
      },
    ],
  },
})

import { defineConfig } from 'vitest/config'

/**
 * Packets are lost and processes wait when a machine is busy: what fails for that alone passes when it is tried again.
 * scripts/test names what needed it.
 */
const realPackets = { retry: 1 }

export default defineConfig({
  test: {
    projects: [
      {
        // Pure tests: no root, no kernel, no network but loopback.
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/golden/*.test.ts', 'test/conformance/*.test.ts'],
          pool: 'threads',
          isolate: false,
          // All processors: by default one is left to a watcher, and of two that is half of them.
          maxWorkers: '100%',
          // Against hanging alone: how long a test takes depends on who else uses the machine.
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // Tests that program a real kernel, each file in a network namespace of its own.
        test: {
          name: 'kernel',
          ...realPackets,
          include: ['test/kernel/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // The same, on the kernel with IPVS: node test/uml/run.mjs -- npx vitest run --project uml
        test: {
          name: 'uml',
          ...realPackets,
          include: ['test/uml/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          // One slow processor: more at once would only wait for each other.
          maxConcurrency: 5,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        // The built program against an API server, with real packets.
        test: {
          name: 'e2e',
          ...realPackets,
          include: ['test/e2e/**/*.test.ts'],
          exclude: ['test/e2e/packet-flow-*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // What goes wrong around the program, in every mode.
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // The packet-flow table in every mode, two modes at a time: most of it is waiting for packets that do not come.
        test: {
          name: 'packet-flow',
          ...realPackets,
          include: ['test/e2e/packet-flow-*.test.ts'],
          pool: 'forks',
          maxWorkers: 2,
          maxConcurrency: 24,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // The sandbox as a user starts it, in a network namespace that stands for the machine.
        test: {
          name: 'sandbox',
          ...realPackets,
          include: ['test/sandbox/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})

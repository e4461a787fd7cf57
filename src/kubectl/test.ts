// `kubectl kubeproxy test`: `kube-proxy test`, which works through the API server, with the plugin's kubeconfig.

import { command, formatCommandHelp, parseCommand, text, UsageError } from '../lib/command.ts'
import { runTestCommand } from '../probe/test-command.ts'
import { testSpec } from '../probe/test-spec.ts'
import type { Cluster } from './cluster.ts'
import type { PluginOptions } from './parse-arguments.ts'

const PROGRAM = 'kubectl kubeproxy'

export function formatTestHelp(): string {
  const options = {
    ...testSpec.options,
    kubeconfig: text(
      'FILE',
      'The API server, and a user who may make namespaces, pods, Services and EndpointSlices, and exec into pods. Default: KUBECONFIG, else ~/.kube/config.',
    ),
    context: text('NAME', 'Default: the current one.'),
  }
  return formatCommandHelp({ ...testSpec, options }, PROGRAM)
}

export function runTest(cluster: Cluster, { image, node }: PluginOptions, words: readonly string[]): Promise<number> {
  if (node !== undefined) throw new UsageError('test takes --nodes A,B, not --node')
  const own = image === undefined ? [] : [`--image=${image}`]
  const argv = [...own, ...words]
  const spec = command({
    ...testSpec,
    run: ({ values }) => runTestCommand(values, { program: PROGRAM, client: cluster.client }),
  })
  const parsed = parseCommand(spec, argv)
  if (parsed.errors.length > 0) throw new UsageError(parsed.errors.join('\n'))
  return spec.run({ ...parsed, given: new Map(), argv })
}

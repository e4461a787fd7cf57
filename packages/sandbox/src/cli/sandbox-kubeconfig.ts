import { fstatSync, readFileSync } from 'node:fs'
import { findInstance } from './sandbox-instances.ts'

const STDOUT = 1

/** Prints where the kubeconfig is: `export KUBECONFIG=$(kube-proxy sandbox kubeconfig)`. Redirected into a file, a copy. */
export async function runSandboxKubeconfig({ name }: { readonly name: string | undefined }): Promise<number> {
  const { kubeconfig } = findInstance(name)
  process.stdout.write(fstatSync(STDOUT).isFile() ? readFileSync(kubeconfig) : `${kubeconfig}\n`)
  return 0
}

import { Buffer } from 'node:buffer'
import { stringify } from 'yaml'

export interface KubeconfigOptions {
  readonly url: string
  readonly certificateAuthority: string
  readonly user: string
  readonly token: string
}

export function formatKubeconfig({ url, certificateAuthority, user, token }: KubeconfigOptions): string {
  const name = 'sandbox'
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: url,
          'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64'),
        },
      },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user } }],
    'current-context': name,
  })
}

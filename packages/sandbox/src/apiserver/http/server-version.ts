// The version that the server says it is: that of the API it speaks. kubectl compares it with its own.

export const serverVersion = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.0+kube-proxy-sandbox',
  gitCommit: '',
  gitTreeState: '',
  buildDate: '2026-04-22T00:00:00Z',
  goVersion: `node${process.versions.node}`,
  compiler: 'tsc',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
} as const

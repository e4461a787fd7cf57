// The sandbox with the ipvs mode on its nodes.

process.env['SANDBOX_MODES'] = 'ipvs'
await import('../sandbox/services.test.ts')
await import('../sandbox/lifecycle.test.ts')
await import('../sandbox/dead-pod.test.ts')

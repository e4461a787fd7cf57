// The page's server with the ipvs mode on the nodes of the sandbox.

process.env['SANDBOX_MODES'] = 'ipvs'
await import('../sandbox/ui.test.ts')

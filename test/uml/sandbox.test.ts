// The sandbox in ipvs mode, on a kernel that has it: who reaches whom, and what may happen meanwhile.

process.env['SANDBOX_MODES'] = 'ipvs'
await import('../sandbox/packet-flow.test.ts')
await import('../sandbox/lifecycle.test.ts')

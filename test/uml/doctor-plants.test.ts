// Failures planted on a node in ipvs mode: the doctor finds them as in the other modes.

process.env['SANDBOX_MODES'] = 'ipvs'
await import('../sandbox/doctor-plants.test.ts')

/** Whether texts that tests compare with are to be written again: `vitest -u`. */
export const isWritten: boolean =
  process.argv.some((argument) => argument === '-u' || argument === '--update') || process.env['UPDATE'] === '1'

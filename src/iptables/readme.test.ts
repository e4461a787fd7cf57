import { test } from 'vitest'
import { checkReadmeExample } from '../../test/support/readme-example.ts'

test('the example in README.md does what it says', async () => {
  await checkReadmeExample('iptables')
})

// scripts/kernels: tries the image on kernels as Debian ships them, and keeps the table of docs/reference/compatibility.md.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkout } from '../../scripts/release/checkout.mjs'
import { formatRow, replaceRow } from './table.mjs'
import { allModes, series, tryKernel } from './run.mjs'

const help = `scripts/kernels: boots kernels as Debian ships them in qemu (without KVM), with the files of the image, and tries each mode there.

  --kernel SERIES   ${Object.keys(series).join(', ')}: of Debian ${Object.values(series).join(', ')}; may be given more than once. 6.1, if not given
  --arch ARCH       amd64 or arm64; amd64, if not given
  --mode MODE       may be given more than once. All, if not given
  --image FOLDER    with kube-proxy-ts-machine-ARCH.tar, an archive of scripts/image; built, if not given
  --minutes NUMBER  for each kernel: 30, if not given
  --write           puts the results into docs/reference/compatibility.md

It takes qemu-system-x86 or qemu-system-arm, kmod, and what scripts/image takes. No root is needed. A kernel takes some minutes: the machine is an
emulated one. For User Mode Linux with the source of Debian 12: UML_SERIES=6.1 node test/uml/run.mjs -- npx vitest run --project uml
`

const { values } = parseArgs({
  options: {
    kernel: { type: 'string', multiple: true, default: ['6.1'] },
    arch: { type: 'string', default: 'amd64' },
    mode: { type: 'string', multiple: true, default: allModes },
    image: { type: 'string' },
    minutes: { type: 'string', default: '30' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(help)
} else {
  checkValues('kernel', values.kernel, Object.keys(series))
  checkValues('arch', [values.arch], ['amd64', 'arm64'])
  checkValues('mode', values.mode, allModes)
  process.exitCode = (await main(values)) ? 0 : 1
}

async function main({ kernel: kernels, arch: architecture, mode: modes, image: given, minutes, write }) {
  const folder = given ?? mkdtempSync(join(tmpdir(), 'machine-image-'))
  try {
    if (given === undefined) {
      const args = ['--arch', architecture, '--tag', 'machine', '--out', folder]
      execFileSync(join(checkout, 'scripts/image'), args, { stdio: ['ignore', 'ignore', 'inherit'] })
    }
    let isGood = true
    for (const version of kernels) {
      const facts = { version, architecture, modes, image: folder, timeoutSeconds: Number(minutes) * 60 }
      const { kernel, commit, lines } = await tryKernel({ ...facts, onLine: (line) => console.log(line) })
      const row = formatRow({ kernel, architecture, modes, lines, commit, date: new Date() })
      console.log(row)
      if (write) {
        const file = join(checkout, 'docs/reference/compatibility.md')
        writeFileSync(file, replaceRow(readFileSync(file, 'utf8'), row))
      }
      isGood &&= lines.includes('FINISHED') && !lines.some((line) => line.startsWith('FAIL '))
    }
    return isGood
  } finally {
    if (given === undefined) rmSync(folder, { recursive: true })
  }
}

function checkValues(name, given, allowed) {
  const wrong = given.find((each) => !allowed.includes(each))
  if (wrong !== undefined) throw new Error(`Cannot use --${name} ${wrong}: must be ${allowed.join(', ')}`)
}

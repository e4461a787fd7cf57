#!/usr/bin/env node
// Runs a command in User Mode Linux: a kernel with everything that the tests need, as an ordinary process.
//
//     node test/uml/run.mjs [--share DIR] [--memory 2G] [--timeout SECONDS] -- COMMAND ARGS...
//
// The command sees this machine's files as its root, the environment and the working folder of the caller, and runs as
// root. /tmp and /run are its own; what it leaves in a shared folder is there afterwards. It has no network but its own
// loopback. The exit code is the command's; 77 says that there is no such kernel here, and standard error says why.
// UML_ARGS=loglevel=7 shows all that the kernel says.

import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const NO_KERNEL = 77
const { options, shares, command } = parseArguments(process.argv.slice(2))
const kernel = findKernel()
buildProgram()
const folder = mkdtempSync(join(tmpdir(), 'uml-'))
try {
  process.exitCode = await boot()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function parseArguments(args) {
  const end = args.indexOf('--')
  if (end < 0 || end === args.length - 1) fail('Cannot run: no command; give it behind --')
  const options = { '--memory': '2G', '--timeout': '1800' }
  const shares = []
  for (let i = 0; i < end; i += 2) {
    const [name, value] = [args[i], args[i + 1]]
    if (name === '--share') shares.push(resolve(value))
    else if (name in options) options[name] = value
    else fail(`Cannot run: unknown option ${name}; --share, --memory and --timeout are known`)
  }
  return { options, shares, command: args.slice(end + 1) }
}

function findKernel() {
  if (process.platform !== 'linux' || process.arch !== 'x64') giveUp('User Mode Linux needs Linux on x86_64')
  const script = join(import.meta.dirname, '..', '..', 'scripts', 'uml-kernel')
  const { status, stdout } = spawnSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (status !== 0) giveUp('no kernel for User Mode Linux could be built, see above')
  return stdout.trim()
}

/** Here, where it takes seconds: the command finds the program up to date. */
function buildProgram() {
  const program = join(import.meta.dirname, '..', '..', 'bin', 'kube-proxy')
  const { status } = spawnSync(program, ['--version'], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) fail('Cannot run: the program could not be built, see above')
}

async function boot() {
  const results = join(folder, 'results')
  mkdirSync(results)
  const init = join(folder, 'init')
  writeFileSync(init, initScript(results), { mode: 0o755 })
  const machine = spawn(
    kernel,
    [
      `mem=${options['--memory']}`,
      'root=/dev/root',
      'rootfstype=hostfs',
      'rootflags=/',
      'rw',
      `init=${init}`,
      'con=null',
      'con0=fd:0,fd:1',
      ...(process.env['UML_ARGS'] ?? 'quiet loglevel=1').split(' '),
    ],
    // A process group of its own: it consists of many processes, which have to go together.
    { stdio: ['ignore', 'pipe', 'inherit'], detached: true },
  )
  const end = () => {
    try {
      process.kill(-machine.pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end)
  process.once('exit', end)
  const timer = setTimeout(
    () => {
      console.error(`uml: ended after ${options['--timeout']} s, which is the limit`)
      end()
    },
    Number(options['--timeout']) * 1000,
  )
  const output = passOn(machine.stdout)
  await new Promise((done) => machine.once('close', done))
  clearTimeout(timer)
  return exitCode(results, output())
}

/** The console ends lines as a terminal does, and the kernel has last words of its own. */
function passOn(stream) {
  let seen = ''
  let pending = ''
  stream.setEncoding('utf8')
  stream.on('data', (text) => {
    seen = (seen + text).slice(-4000)
    pending += text.replaceAll('\r', '')
    const end = pending.lastIndexOf('\n') + 1
    process.stdout.write(pending.slice(0, end).replace(/^(Powering off\.|reboot: .*|System halted\.)\n/gm, ''))
    pending = pending.slice(end)
  })
  return () => seen
}

function exitCode(results, output) {
  try {
    return Number(readFileSync(join(results, 'exit-code'), 'utf8'))
  } catch {
    const booted = readBooted(results)
    if (!booted) giveUp(`the kernel does not start here (it takes ptrace):\n${output}`)
    console.error(`uml: the kernel ended before the command did:\n${output}`)
    return 1
  }
}

function readBooted(results) {
  try {
    return readFileSync(join(results, 'booted'), 'utf8') !== ''
  } catch {
    return false
  }
}

/** What the guest runs as its first process. */
function initScript(results) {
  const environment = Object.entries({ HOME: '/root', ...process.env, UML: '1' })
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))
    .map(([name, value]) => `export ${name}=${quote(value)}`)
  return `#!/bin/bash
${environment.join('\n')}
export PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
main() {
  mount -t proc proc /proc
  mount -t sysfs sys /sys
  ln -sfn /proc/self/fd /dev/fd
  for n in 0:stdin 1:stdout 2:stderr; do ln -sfn "/proc/self/fd/\${n%:*}" "/dev/\${n#*:}"; done
  for place in /run /tmp; do mount -t tmpfs -o size=90% tmpfs "$place"; done
  mkdir -p /run/netns
  for shared in ${[results, ...shares, ...hiddenCheckout()].map(quote).join(' ')}; do
    mkdir -p "$shared"
    mount -t hostfs none "$shared" -o "$shared"
  done
  echo booted > ${quote(join(results, 'booted'))}
  hostname uml
  ip link set lo up
  ulimit -n 65536
  cd ${quote(process.cwd())}
  # Through a pipe: the console is a terminal, for which many programs write otherwise.
  { ${command.map(quote).join(' ')}; echo $? > ${quote(join(results, 'exit-code'))}; } 2>&1 </dev/null | cat
  sync
  # reboot(2) with RB_POWER_OFF: a small Debian has no halt, and perl is a part of every Debian.
  perl -e 'syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc, 0)'
}
main
`
}

/** The guest has a /run and a /tmp of its own, which would hide a checkout there. */
function hiddenCheckout() {
  return /^\/(run|tmp)\//.test(process.cwd()) ? [process.cwd()] : []
}

function quote(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function giveUp(reason) {
  console.error(`uml: ${reason}`)
  process.exit(NO_KERNEL)
}

function fail(message) {
  console.error(`uml: ${message}`)
  process.exit(2)
}

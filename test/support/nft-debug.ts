// What the nft program translates a ruleset into: the oracle for every rule that we write ourselves.
//
// nft is asked for the messages that it would send (--debug=mnl) and for its own words for them (--debug=netlink). The
// messages are decoded by our codec, and each expression is then put into nft's words again: if the two texts differ, our
// codec is wrong and this throws.

import { NFGENMSG_LENGTH } from '../../src/netlink/nfnetlink.ts'
import { spawnSync } from 'node:child_process'
import type { Expression } from '../../src/nftables/types.ts'
import { messagesOf } from '../../src/netlink/message.ts'
import { messageType } from '../../src/nftables/bytes/messages.ts'
import { toWireRegister } from '../../src/nftables/bytes/registers.ts'
import { ruleAttributes } from '../../src/nftables/bytes/rule.ts'
import { LITTLE_ENDIAN } from '../../src/lib/endian.ts'

/** The rules of each chain, as expressions, in order. */
export type CompiledChains = ReadonlyMap<string, readonly (readonly Expression[])[]>

/**
 * Translates a ruleset with exactly one table, given as nft reads it. Nothing is loaded: nft runs in check mode and in a
 * network namespace of its own.
 */
export function compileTableWithNft(ruleset: string): CompiledChains {
  // nft leaves out of its messages what a counter begins with, where that is nothing.
  const output = runNft(ruleset.replaceAll(/ counter (?!packets)/g, ' counter packets 7 bytes 9 '))
  const chains = new Map<string, Expression[][]>()
  const words: string[][] = []
  for (const message of messagesOf(readHexDump(output))) {
    if (message.type !== messageType('newRule')) continue
    const rule = ruleAttributes.read(message.view, message.start + NFGENMSG_LENGTH, message.end)
    if (rule === undefined) throw new Error(`Cannot read a rule that nft wrote:\n${output}`)
    const expressions = [...(rule.expressions ?? [])]
    chains.set(rule.chain, [...(chains.get(rule.chain) ?? []), expressions])
    words.push(expressions.map(formatLikeNft))
  }
  const nftWords = readWords(output)
  if (JSON.stringify(words) !== JSON.stringify(nftWords)) {
    throw new Error(`Cannot trust our codec: it reads\n${format(words)}\nwhere nft says\n${format(nftWords)}`)
  }
  return new Map(Array.from(chains, ([name, rules]) => [name, rules.map((rule) => rule.map(beginning))]))
}

/** What was put in for nothing. */
function beginning(expression: Expression): Expression {
  return expression.kind === 'counter' && expression.packets === 7n && expression.bytes === 9n
    ? { ...expression, packets: 0n, bytes: 0n }
    : expression
}

/** Translates one rule. `context` declares the sets and chains that it names, as they stand inside of `table ip t {}`. */
export function compileWithNft(rule: string, context = '', family: 'ip' | 'ip6' = 'ip'): readonly Expression[] {
  const chains = compileTableWithNft(`table ${family} t {\n${context}\nchain compiled {\n${rule}\n}\n}\n`)
  const rules = chains.get('compiled') ?? []
  if (rules.length !== 1) throw new Error(`Cannot compile ${JSON.stringify(rule)}: it is ${rules.length} rules`)
  return rules[0]!
}

/** Runs nft on a ruleset and fails with what it says. */
function runNft(ruleset: string): string {
  const unshare = process.getuid?.() === 0 ? '-n' : '-rn'
  const args = [unshare, 'nft', '--check', '--debug=netlink,mnl', '-f', '-']
  const { error, status, signal, stdout, stderr } = spawnSync('unshare', args, {
    input: ruleset,
    encoding: 'latin1',
    maxBuffer: 256 << 20,
  })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`Cannot compile, nft says (${signal ?? status}):\n${stderr}\n${ruleset}`)
  return stdout
}

/** The bytes of the messages in a dump of --debug=mnl, in which each line is four bytes. */
function readHexDump(output: string): Uint8Array {
  const words: Uint8Array[] = []
  const word = (write: (view: DataView) => void) => {
    const bytes = new Uint8Array(4)
    write(new DataView(bytes.buffer))
    words.push(bytes)
  }
  // oxlint-disable-next-line no-control-regex -- nft colours its dump.
  for (const line of output.replaceAll(/\x1b\[[0-9;]*m/g, '').split('\n')) {
    let match
    if ((match = /^\| {2}(\d{10}) {2}\|/.exec(line))) {
      const value = Number(match[1])
      word((view) => view.setUint32(0, value, LITTLE_ENDIAN))
    } else if ((match = /^\| (\d{5}) \| .{4} \|/.exec(line))) {
      const type = Number(match[1])
      word((view) => view.setUint16(0, type, LITTLE_ENDIAN))
    } else if ((match = /^\|(\d{5})\|(.)-\|(\d{5})\|/.exec(line))) {
      const [length, nested, type] = [Number(match[1]), match[2] === 'N' ? 0x8000 : 0, Number(match[3])]
      word((view) => {
        view.setUint16(0, length, LITTLE_ENDIAN)
        view.setUint16(2, type | nested, LITTLE_ENDIAN)
      })
    } else if ((match = /^\| (([0-9a-f]{2} ){4}) \|/.exec(line))) {
      words.push(Uint8Array.from(match[1]!.trim().split(' '), (byte) => parseInt(byte, 16)))
    }
  }
  const bytes = new Uint8Array(words.length * 4)
  for (const [i, four] of words.entries()) bytes.set(four, i * 4)
  return bytes
}

/** nft's own words for each rule. */
function readWords(output: string): string[][] {
  const rules: string[][] = []
  let isInRule = false
  for (const line of output.split('\n')) {
    const isExpression = line.startsWith('  [ ') && line.endsWith(' ]')
    if (isExpression) {
      if (!isInRule) rules.push([])
      // Given with a port, and the kernel sets it by itself: the same expression with and without.
      rules.at(-1)!.push(line.trim().replace(/^(\[ nat .*) flags 0x2 \]$/, '$1 ]'))
    }
    isInRule = isExpression
  }
  return rules
}

function format(rules: readonly (readonly string[])[]): string {
  return rules.map((rule) => rule.join('\n')).join('\n\n')
}

const CT_NAMES: Readonly<Record<string, string>> = {
  saddr: 'src',
  daddr: 'dst',
  protoSrc: 'proto_src',
  protoDst: 'proto_dst',
  l3proto: 'l3protocol',
  srcIp: 'src_ip',
  dstIp: 'dst_ip',
  srcIp6: 'src_ip6',
  dstIp6: 'dst_ip6',
}

/** An expression in the words of nft's --debug=netlink (libnftnl's src/expr/*.c). */
export function formatLikeNft(expression: Expression): string {
  return `[ ${formatExpression(expression)} ]`
}

function formatExpression(expression: Expression): string {
  switch (expression.kind) {
    case 'payload': {
      const { length, base, offset, dreg } = expression
      return `payload load ${length}b @ ${base} header + ${offset} => ${reg(dreg)}`
    }
    case 'meta':
      return `meta load ${expression.key} => ${reg(expression.dreg)}`
    case 'metaSet':
      return `meta set ${expression.key} with ${reg(expression.sreg)}`
    case 'ct': {
      const direction = expression.direction === undefined ? '' : ` , dir ${expression.direction}`
      return `ct load ${CT_NAMES[expression.key] ?? expression.key} => ${reg(expression.dreg)}${direction}`
    }
    case 'fib':
      return `fib ${expression.source} ${expression.result} => ${reg(expression.dreg)}`
    case 'cmp':
      return `cmp ${expression.op} ${reg(expression.sreg)} ${hex(expression.value)}`
    case 'bitwise': {
      const { sreg, dreg, mask, xor } = expression
      return `bitwise ${reg(dreg)} = ( ${reg(sreg)} & ${hex(mask)} ) ^ ${hex(xor)}`
    }
    case 'byteorder': {
      const { op, sreg, dreg, length, size } = expression
      return `byteorder ${reg(dreg)} = ${op}(${reg(sreg)}, ${size}, ${length})`
    }
    case 'lookup': {
      const { set, sreg, dreg, invert } = expression
      const to = dreg === undefined ? '' : ` dreg ${dreg === 'verdict' ? 0 : toWireRegister(dreg)}`
      return `lookup ${reg(sreg)} set ${set}${to}${invert === true ? ' 0x1' : ''}`
    }
    case 'numgen': {
      const { type, modulus, offset, dreg } = expression
      return `numgen ${reg(dreg)} = ${type} mod ${modulus}${offset === 0 ? '' : ` offset ${offset}`}`
    }
    case 'hash': {
      const { sreg, dreg, length, seed, modulus } = expression
      return `hash ${reg(dreg)} = jhash(${reg(sreg)}, ${length}, 0x${seed.toString(16)}) % mod ${modulus}`
    }
    case 'immediate':
      return `immediate ${reg(expression.dreg)} ${hex(expression.value)}`
    case 'verdict':
      return `immediate reg 0 ${expression.code}${'chain' in expression ? ` -> ${expression.chain}` : ''}`
    case 'dynset': {
      const { op, set, keyReg, dataReg, timeoutMs } = expression
      const data = dataReg === undefined ? '' : ` sreg_data ${toWireRegister(dataReg)}`
      const timeout = timeoutMs === undefined ? '' : ` timeout ${timeoutMs}ms`
      const limits = expression.limits === undefined ? '' : ` expr [ ${formatExpression(expression.limits)} ]`
      return `dynset ${op} reg_key ${toWireRegister(keyReg)} set ${set}${data}${timeout}${limits}`
    }
    case 'nat': {
      const { type, family, addrMin, addrMax, protoMin, protoMax, flags } = expression
      return [
        `nat ${type} ${family} addr_min ${reg(addrMin)}`,
        ...(addrMax === undefined ? [] : [`addr_max ${reg(addrMax)}`]),
        ...(protoMin === undefined ? [] : [`proto_min ${reg(protoMin)}`]),
        ...(protoMax === undefined ? [] : [`proto_max ${reg(protoMax)}`]),
        ...(flags === 0 ? [] : [`flags 0x${flags.toString(16)}`]),
      ].join(' ')
    }
    case 'masq':
      return `masq${flagsText(expression.flags)}`
    case 'redir':
      return `redir proto_min ${reg(expression.protoMin)}${flagsText(expression.flags)}`
    case 'reject':
      return `reject type ${expression.type} code ${expression.code}`
    case 'counter':
      return `counter pkts ${expression.packets} bytes ${expression.bytes}`
    case 'log':
      return `log group ${expression.group} snaplen ${expression.snaplen} qthreshold 0`
    case 'limit': {
      const { perSecond, burst, over } = expression
      return `limit rate ${perSecond}/second burst ${burst} type packets flags 0x${over ? 1 : 0}`
    }
    case 'connlimit':
      return `connlimit count ${expression.most} flags ${expression.over ? 1 : 0}`
    case 'unknown':
      return `${expression.name} ?`
  }
}

function reg(word: number): string {
  return `reg ${toWireRegister(word)}`
}

function flagsText(flags: number): string {
  return flags === 0 ? '' : ` flags 0x${flags.toString(16)}`
}

/** The words of a register, as numbers of this machine. */
function hex(value: string): string {
  const bytes = Uint8Array.from(value.padEnd(Math.ceil(value.length / 4) * 4, '\0'), (c) => c.charCodeAt(0))
  const view = new DataView(bytes.buffer)
  const words: string[] = []
  for (let at = 0; at < bytes.length; at += 4) {
    words.push(`0x${view.getUint32(at, LITTLE_ENDIAN).toString(16).padStart(8, '0')}`)
  }
  return words.join(' ')
}

// Registers. The kernel has 16 registers of 32 bits; Expression numbers them 0..15. On the wire a register that starts
// a group of four has the group's number, as nft writes it and as the kernel dumps it (nft_dump_register in
// net/netfilter/nf_tables_api.c): word 0 is register 1, word 1 is 9, word 4 is 2, word 5 is 13.

import { be32, type Codec, mapped } from '../../netlink/attributes.ts'
import { NFT_REG32_00, NFT_REG32_15, NFT_REG_1, NFT_REG_4, NFT_REG_VERDICT } from './uapi.ts'

export const register: Codec<number> = mapped(be32, toWireRegister, fromWireRegister)

/** Where the value of a map goes: a register, or the verdict. */
export const registerOrVerdict: Codec<number | 'verdict'> = mapped(
  be32,
  (word: number | 'verdict') => (word === 'verdict' ? NFT_REG_VERDICT : toWireRegister(word)),
  (number) => (number === NFT_REG_VERDICT ? 'verdict' : fromWireRegister(number)),
)

/** The number that the kernel gives to the register at this 32-bit word. */
export function toWireRegister(word: number): number {
  return word % 4 === 0 ? NFT_REG_1 + word / 4 : NFT_REG32_00 + word
}

/** The 32-bit word at which a register starts; undefined for the verdict register and for numbers that do not exist. */
export function fromWireRegister(number: number): number | undefined {
  if (number >= NFT_REG_1 && number <= NFT_REG_4) return (number - NFT_REG_1) * 4
  if (number >= NFT_REG32_00 && number <= NFT_REG32_15) return number - NFT_REG32_00
  return undefined
}

// Numbers of include/uapi/linux/bpf.h and btf.h.

/** The system call. */
export const BPF_CALL: Readonly<Partial<Record<NodeJS.Architecture, number>>> = { x64: 321, arm64: 280 }

/** enum bpf_cmd */
export const COMMAND = {
  createMap: 0,
  loadProgram: 5,
  openRawTracepoint: 17,
  /** Reads an element and deletes it; of a queue, the oldest. */
  takeElement: 21,
  lookUpBatch: 24,
  updateBatch: 26,
  deleteBatch: 27,
  createLink: 28,
  updateLink: 29,
} as const

/** enum bpf_map_type */
export const MAP_TYPE = { hash: 1, recentHash: 9, queue: 22 } as const

/** Memory of an element is taken when it comes. */
export const BPF_F_NO_PREALLOC = 1

/** enum bpf_prog_type: programs that are given a socket, and such that are given an address as well. */
const BPF_PROG_TYPE_CGROUP_SOCK = 9
const BPF_PROG_TYPE_CGROUP_SOCK_ADDR = 18
const BPF_PROG_TYPE_SOCK_OPS = 13

/** What a process of a cgroup does with a socket, and a program can have a hand in: enum bpf_attach_type. */
export const HOOKS = {
  connect4: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 10 },
  connect6: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 11 },
  sendmsg4: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 14 },
  sendmsg6: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 15 },
  recvmsg4: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 19 },
  recvmsg6: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 20 },
  getpeername4: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 29 },
  getpeername6: { type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR, attach: 30 },
  release: { type: BPF_PROG_TYPE_CGROUP_SOCK, attach: 34 },
  stateOfTcp: { type: BPF_PROG_TYPE_SOCK_OPS, attach: 3 },
} as const

/** enum bpf_prog_type: programs that are given the arguments of a tracepoint. */
export const PROGRAM_TYPE = { rawTracepoint: 17 } as const

export type Hook = keyof typeof HOOKS

/** Functions that programs can call. */
export const HELPER = {
  lookUp: 1,
  update: 2,
  delete: 3,
  monotonicTime: 5,
  random: 7,
  socketCookie: 46,
  push: 87,
  readKernel: 113,
  netnsCookie: 122,
} as const

/** What a program at release() is given: struct bpf_sock, by offset. */
export const SOCKET = { type: 8, protocol: 12 } as const

/** What a program at connect(), sendmsg(), recvmsg() or getpeername() is given: struct bpf_sock_addr, by offset. Addresses and ports in network order. */
export const SOCKET_ADDRESS = { ip4: 4, ip6: 8, port: 24, type: 32, protocol: 36, socket: 64 } as const

/** What its socket is, by offset: the address and port that it is bound to. The port is in this machine's order. */
export const BOUND = { ip4: 24, ip6: 28, port: 44 } as const

/** Its state, by offset; and that of a socket of UDP after connect(), which is TCP_ESTABLISHED. */
export const SOCKET_STATE = 72
export const UDP_IS_CONNECTED = 1

/** What a program at changes of TCP's state is given: struct bpf_sock_ops, by offset. The port is in this machine's order. */
export const TCP_STATE = { what: 0, localIp4: 28, localIp6: 48, localPort: 68 } as const

/** A TCP socket that connects has its address and port, and sends its first packet next: BPF_SOCK_OPS_TCP_CONNECT_CB. */
export const TCP_CONNECTS = 3

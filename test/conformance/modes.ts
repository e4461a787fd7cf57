// Which readers of the packet-flow table leave out which rows, and why. A row that a mode cannot promise says so itself
// (PacketFlowCase.modes); here stands what a reader cannot try.

export type ModeName = 'userspace' | 'iptables' | 'ipvs' | 'nftables'

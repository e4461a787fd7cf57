// Tests that fail now and then, and could not be made steady yet. They run, they are told, and they do not fail the run.
//
// An entry: { project: /^e2e$/, test: /full name/, reason: 'what is known of the cause, and what was tried' }
// The list is meant to be empty.

/** @type {{ project: RegExp, test: RegExp, reason: string }[]} */
export const quarantine = [
  {
    project: /^sandbox$/,
    test: /^mode iptables > pods that come and go all the time cost no request$/,
    reason:
      'two requests met EHOSTUNREACH once, while gigabytes were being deleted on the same disk: a sync by iptables-restore may then take longer than the pods serve on; not seen otherwise',
  },
  {
    project: /^sandbox$/,
    test: /^half a minute of nftables loses nothing, follows every change, and does not grow$/,
    reason:
      'ended with status 1 once, at the same moment, and what it lost was not kept; the same seed passed by itself right after',
  },
  {
    project: /^uml$/,
    test: /^nftables, least-connections: the slowest clients wait less than half as long as at random$/,
    reason:
      'shares move by the clock, and User Mode Linux may leave the proxy without a processor for more than a second; seen to fail at a load of 40 only. test/e2e/least-connections.test.ts holds it on the machine itself',
  },
]

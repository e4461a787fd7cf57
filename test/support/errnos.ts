/** What a system call may fail with when nothing is wrong with what it was asked for, or when something is. */
export const ERRNOS = [
  'EAGAIN',
  'EBUSY',
  'EEXIST',
  'EINTR',
  'EINVAL',
  'EMFILE',
  'ENOBUFS',
  'ENOENT',
  'ENOMEM',
  'ENOSPC',
  'EPERM',
  'ETIMEDOUT',
] as const

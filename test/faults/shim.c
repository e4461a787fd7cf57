// Makes system calls of a process fail on demand, for tests: a library to load before all others (LD_PRELOAD).
//
// What fails is said in a file that is mapped into memory, named by FAULTS_FILE: shim.ts has the same layout. Programs that
// the process starts have it too.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
  NETLINK_SOCKET,
  NETLINK_SEND,
  NETLINK_RECEIVE,
  FORK,
  EPOLL_CTL,
  EPOLL_WAIT,
  XTABLES_REPLACE,
  CONNTRACK_SEND,
  AFFINITY_SEND,
  RETRY_SEND,
  BPF,
  COUNT
};

struct rule {
  _Atomic int32_t errnum; // 0: nothing fails.
  _Atomic int32_t left;   // How many calls fail; negative: all.
  _Atomic int64_t hits;   // How many did.
};

struct faults {
  _Atomic int64_t clock_offset_ns; // Added to the wall clock.
  int64_t unused;
  struct rule rules[COUNT];
};

static struct faults *faults;
static uintptr_t program_start, program_end;

// The program itself comes first. Its code may be in several segments.
static int note_program(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
    uintptr_t start = info->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
    if (program_start == 0 || start < program_start) program_start = start;
    if (end > program_end) program_end = end;
  }
  return 1;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS_FILE");
  int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *memory = mmap(NULL, sizeof(struct faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory != MAP_FAILED) faults = memory;
  dl_iterate_phdr(note_program, NULL);
}

// Whether this call fails, and errno if so.
static int fails(int which) {
  if (faults == NULL) return 0;
  struct rule *rule = &faults->rules[which];
  int errnum = atomic_load(&rule->errnum);
  if (errnum == 0) return 0;
  int32_t left = atomic_load(&rule->left);
  do {
    if (left == 0) return 0;
    if (left < 0) break;
  } while (!atomic_compare_exchange_weak(&rule->left, &left, left - 1));
  atomic_fetch_add(&rule->hits, 1);
  errno = errnum;
  return 1;
}

// Node's own event loop ends the process when its epoll fails, as it should: only what the proxy calls itself is meant.
#define BY_PROXY ((uintptr_t)__builtin_return_address(0) < program_start || (uintptr_t)__builtin_return_address(0) >= program_end)
#define NEXT(name) ({ static __typeof__(&name) next; if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); next; })

static int is_netlink(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  int saved = errno;
  int result = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
  errno = saved;
  return result == 0 && domain == AF_NETLINK;
}

static int active(int which) { return faults != NULL && atomic_load(&faults->rules[which].errnum) != 0; }

// Messages to subsystems of nfnetlink: that of connections, or of nftables; these about the elements of a set, or in a batch.
enum { CTNETLINK = 1, NFTABLES = 10, GET_ELEMENTS = NFTABLES << 8 | 13, DESTROY_ELEMENTS = NFTABLES << 8 | 30 };

static unsigned type_at(const uint8_t *bytes, size_t length, size_t start) {
  return start + 16 > length ? 0 : bytes[start + 4] | bytes[start + 5] << 8;
}

static int is_about_affinity(const uint8_t *bytes, size_t length) {
  unsigned first = type_at(bytes, length, 0), second = length < 16 ? 0 : type_at(bytes, length, *(const uint32_t *)bytes);
  return (first == GET_ELEMENTS || second == DESTROY_ELEMENTS) && memmem(bytes, length, "affinity-", 9) != NULL;
}

static int is_to(int fd, int protocol) {
  int actual = -1, saved = errno;
  socklen_t length = sizeof actual;
  int result = getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &actual, &length);
  errno = saved;
  return result == 0 && is_netlink(fd) && actual == protocol;
}

static int send_fails(int fd, const void *bytes, size_t length) {
  const int NETFILTER = 12;
  if (active(NETLINK_SEND) && is_netlink(fd) && fails(NETLINK_SEND)) return 1;
  if (active(CONNTRACK_SEND) && is_to(fd, NETFILTER) && type_at(bytes, length, 0) >> 8 == CTNETLINK && fails(CONNTRACK_SEND)) return 1;
  if (active(AFFINITY_SEND) && is_to(fd, NETFILTER) && is_about_affinity(bytes, length) && fails(AFFINITY_SEND)) return 1;
  if (active(RETRY_SEND) && is_to(fd, NETFILTER) && memmem(bytes, length, "kube-proxy-retry", 16) != NULL && fails(RETRY_SEND)) return 1;
  return 0;
}

int socket(int domain, int type, int protocol) {
  if (domain == AF_NETLINK && fails(NETLINK_SOCKET)) return -1;
  return NEXT(socket)(domain, type, protocol);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
  if (send_fails(fd, bytes, length)) return -1;
  return NEXT(send)(fd, bytes, length, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t to_length) {
  if (send_fails(fd, bytes, length)) return -1;
  return NEXT(sendto)(fd, bytes, length, flags, to, to_length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  if (active(NETLINK_SEND) && is_netlink(fd) && fails(NETLINK_SEND)) return -1;
  return NEXT(sendmsg)(fd, message, flags);
}

ssize_t recvfrom(int fd, void *bytes, size_t length, int flags, struct sockaddr *from, socklen_t *from_length) {
  if (active(NETLINK_RECEIVE) && is_netlink(fd) && fails(NETLINK_RECEIVE)) return -1;
  return NEXT(recvfrom)(fd, bytes, length, flags, from, from_length);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  if (active(NETLINK_RECEIVE) && is_netlink(fd) && fails(NETLINK_RECEIVE)) return -1;
  return NEXT(recvmsg)(fd, message, flags);
}

// Only bpf() is called in this way by the proxy.
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_bpf && fails(BPF)) return -1;
  return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

pid_t fork(void) {
  if (fails(FORK)) return -1;
  return NEXT(fork)();
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event) {
  if (active(EPOLL_CTL) && BY_PROXY && op == EPOLL_CTL_ADD && fails(EPOLL_CTL)) return -1;
  return NEXT(epoll_ctl)(epoll, op, fd, event);
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout) {
  int result = NEXT(epoll_wait)(epoll, events, count, timeout);
  if (active(EPOLL_WAIT) && BY_PROXY && fails(EPOLL_WAIT)) return -1;
  return result;
}

// IPT_SO_SET_REPLACE and IP6T_SO_SET_REPLACE: how iptables-legacy puts a table into the kernel.
int setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
  if ((level == 0 || level == 41) && name == 64 && active(XTABLES_REPLACE) && fails(XTABLES_REPLACE)) return -1;
  return NEXT(setsockopt)(fd, level, name, value, length);
}

static void shift(int64_t *seconds, int64_t *nanoseconds) {
  int64_t offset = faults == NULL ? 0 : atomic_load(&faults->clock_offset_ns);
  if (offset == 0) return;
  int64_t total = *seconds * 1000000000 + *nanoseconds + offset;
  *seconds = total / 1000000000;
  *nanoseconds = total % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = NEXT(clock_gettime)(clock, time);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  int64_t seconds = time->tv_sec, nanoseconds = time->tv_nsec;
  shift(&seconds, &nanoseconds);
  *time = (struct timespec){seconds, nanoseconds};
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  int result = NEXT(gettimeofday)(time, zone);
  if (result != 0) return result;
  int64_t seconds = time->tv_sec, nanoseconds = time->tv_usec * 1000;
  shift(&seconds, &nanoseconds);
  *time = (struct timeval){seconds, nanoseconds / 1000};
  return result;
}

/* An Ethernet switch that holds every frame back, as kernels without netem cannot.
 *
 *   delay_switch NANOSECONDS (NAMESPACE INTERFACE RAIL)...
 *
 * Makes INTERFACE in each network namespace. Frames go between interfaces of one RAIL: to the one
 * that a frame's destination was seen at, else to all. Says "ready" and serves until killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
  kMostPorts = 64,
  kMostBytes = 66000,
  kMostFrames = 1 << 16, /* more are lost; a power of two */
  kPacketHeader = 10,    /* struct virtio_net_hdr, before each frame */
  kAddress = 6,
  kMostAtOnce = 64
};

struct Frame {
  unsigned char* bytes;
  size_t length;
  int from;
  long long due;
};
struct Port {
  int fd, rail, known;
  unsigned char address[kAddress]; /* of the host behind it, once it has sent something */
};

static struct Port ports[kMostPorts];
static int port_count;
static struct Frame frames[kMostFrames];
static unsigned first_frame, end_frame;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int fail(const char* what) {
  fprintf(stderr, "delay_switch: %s: %s\n", what, strerror(errno));
  return -1;
}

/* Large frames pass unsegmented, as they do over a veth. */
static int open_port(const char* space, const char* name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", space);
  const int there = open(path, O_RDONLY | O_CLOEXEC);
  if (there < 0 || setns(there, CLONE_NEWNET) != 0) return fail(path);
  close(there);
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct ifreq wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  snprintf(wanted.ifr_name, sizeof wanted.ifr_name, "%s", name);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &wanted) != 0) return fail("/dev/net/tun");
  if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) return fail("offload");
  return fd;
}

static int leads_to(const struct Port* port, const unsigned char* destination) {
  return port->known && memcmp(destination, port->address, kAddress) == 0;
}

static void deliver(const struct Frame* frame) {
  const unsigned char* destination = frame->bytes + kPacketHeader;
  const int rail = ports[frame->from].rail;
  int only = -1;
  for (int i = 0; i < port_count; i++)
    if (ports[i].rail == rail && leads_to(&ports[i], destination)) only = i;
  for (int i = 0; i < port_count; i++) {
    if (i == frame->from || ports[i].rail != rail || (only >= 0 && only != i)) continue;
    if (write(ports[i].fd, frame->bytes, frame->length) < 0) continue; /* lost, as on any wire */
  }
}

static void deliver_due(void) {
  const long long time = now();
  while (first_frame != end_frame && frames[first_frame % kMostFrames].due <= time) {
    struct Frame* frame = &frames[first_frame++ % kMostFrames];
    deliver(frame);
    free(frame->bytes);
  }
}

static void take_from(int port, long long hold) {
  static unsigned char buffer[kMostBytes];
  for (int k = 0; k < kMostAtOnce; k++) {
    const ssize_t length = read(ports[port].fd, buffer, sizeof buffer);
    if (length < kPacketHeader + 2 * kAddress) return;
    memcpy(ports[port].address, buffer + kPacketHeader + kAddress, kAddress);
    ports[port].known = 1;
    if (end_frame - first_frame == kMostFrames) return;
    unsigned char* bytes = malloc((size_t)length);
    if (bytes == NULL) return;
    memcpy(bytes, buffer, (size_t)length);
    frames[end_frame++ % kMostFrames] = (struct Frame){bytes, (size_t)length, port, now() + hold};
  }
}

static struct timespec until_due(void) {
  long long left = 1000000000;
  if (first_frame != end_frame) left = frames[first_frame % kMostFrames].due - now();
  if (left < 0) left = 0;
  return (struct timespec){left / 1000000000, left % 1000000000};
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: delay_switch NANOSECONDS (NAMESPACE INTERFACE RAIL)...\n");
    return 2;
  }
  const long long hold = atoll(argv[1]);
  struct pollfd wanted[kMostPorts];
  for (int i = 2; i + 2 < argc && port_count < kMostPorts; i += 3, port_count++) {
    ports[port_count].fd = open_port(argv[i], argv[i + 1]);
    if (ports[port_count].fd < 0) return 1;
    ports[port_count].rail = atoi(argv[i + 2]);
    wanted[port_count] = (struct pollfd){ports[port_count].fd, POLLIN, 0};
  }
  puts("ready");
  fclose(stdout);
  for (;;) {
    deliver_due();
    const struct timespec most = until_due();
    ppoll(wanted, (nfds_t)port_count, &most, NULL);
    for (int i = 0; i < port_count; i++)
      if (wanted[i].revents & POLLIN) take_from(i, hold);
  }
}

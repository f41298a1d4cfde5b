/* The floor: the minimum that a single-threaded socket server can do. One epoll loop reads, finds the end of each RESP
 * command, and answers each with the same five integers. It stores no keys, validates almost nothing and trusts its
 * client; it exists only to be measured. It listens on a free port of 127.0.0.1 and prints it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 128 << 10, EVENTS = 512, FILES = 1 << 17, WAITING = 1 << 20 };

static const char reply[] = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n";
enum { REPLY_BYTES = sizeof reply - 1 };

/* A connection's state: the beginning of a command, and replies that its client has not read. */
struct conn {
	char *kept, *waiting;
	size_t kept_len, waiting_len;
};

static struct conn *conns[FILES];
static char input[2 * READ_BYTES], output[(READ_BYTES / 8) * REPLY_BYTES];

static void die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Reads the number that ends in \r\n at p; returns the position after it, or NULL if it is incomplete. */
static const char *number(const char *p, const char *end, long *n)
{
	for (*n = 0; p < end && *p >= '0' && *p <= '9'; p++)
		*n = *n * 10 + (*p - '0');
	return p + 2 <= end ? p + 2 : NULL;
}

/* Returns the end of the command at p, or NULL if it is incomplete. */
static const char *command_end(const char *p, const char *end)
{
	long args, bytes;

	if (p == end || (p = number(p + 1, end, &args)) == NULL)
		return NULL;
	while (args-- > 0) {
		if (p == end || (p = number(p + 1, end, &bytes)) == NULL || end - p < bytes + 2)
			return NULL;
		p += bytes + 2;
	}
	return p;
}

static void hang_up(int fd)
{
	free(conns[fd]->kept);
	free(conns[fd]->waiting);
	free(conns[fd]);
	conns[fd] = NULL;
	close(fd);
}

/* Sends pending replies. */
static int drain(int fd, struct conn *c)
{
	while (c->waiting_len > 0) {
		ssize_t n = write(fd, c->waiting, c->waiting_len);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		memmove(c->waiting, c->waiting + n, c->waiting_len -= (size_t)n);
	}
	return 0;
}

static int answer(int fd, struct conn *c, size_t len)
{
	size_t sent = 0;

	if (c->waiting_len == 0 && len > 0) {
		ssize_t n = write(fd, output, len);
		if (n < 0 && errno != EAGAIN)
			return -1;
		sent = n > 0 ? (size_t)n : 0;
	}
	if (sent == len)
		return 0;
	if (c->waiting == NULL && (c->waiting = malloc(WAITING)) == NULL)
		return -1;
	if (c->waiting_len + len - sent > WAITING)
		return -1; /* the client does not read */
	memcpy(c->waiting + c->waiting_len, output + sent, len - sent);
	c->waiting_len += len - sent;
	return 0;
}

/* Reads until nothing is left; returns -1 if the connection was closed. */
static int serve(int fd, struct conn *c)
{
	for (;;) {
		if (c->kept_len > READ_BYTES)
			return -1;
		if (c->kept_len > 0)
			memcpy(input, c->kept, c->kept_len);
		ssize_t got = read(fd, input + c->kept_len, READ_BYTES);
		if (got <= 0)
			return got < 0 && errno == EAGAIN ? 0 : -1;
		const char *p = input, *end = input + c->kept_len + got, *next;
		size_t len = 0;
		for (; (next = command_end(p, end)) != NULL; p = next, len += REPLY_BYTES) {
			if (len + REPLY_BYTES > sizeof output)
				return -1;
			memcpy(output + len, reply, REPLY_BYTES);
		}
		c->kept_len = (size_t)(end - p);
		if (c->kept_len > 0) {
			if (c->kept == NULL && (c->kept = malloc(2 * READ_BYTES)) == NULL)
				return -1;
			memcpy(c->kept, p, c->kept_len);
		}
		if (answer(fd, c, len) < 0)
			return -1;
		if (got < READ_BYTES)
			return 0;
	}
}

static int listen_on_free_port(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof addr;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &size) < 0)
		die("listen");
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}

static void watch(int epoll, int fd, unsigned events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		die("epoll_ctl");
}

static void accept_all(int epoll, int listener)
{
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (fd >= FILES || (conns[fd] = calloc(1, sizeof **conns)) == NULL)
			die("too many clients");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		watch(epoll, fd, EPOLLIN | EPOLLOUT | EPOLLET);
	}
}

int main(void)
{
	struct rlimit files;
	struct epoll_event events[EVENTS];

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listen_on_free_port();
	if (epoll < 0)
		die("epoll_create");
	watch(epoll, listener, EPOLLIN);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == listener)
				accept_all(epoll, listener);
			else if (drain(fd, conns[fd]) < 0 || ((events[i].events & ~EPOLLOUT) && serve(fd, conns[fd]) < 0))
				hang_up(fd);
		}
	}
}

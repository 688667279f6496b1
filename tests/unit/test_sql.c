/* SPDX-License-Identifier: Apache-2.0 */
/* test_sql.c - what a database server is offered before anybody signs in; all else is tested by tests/aws, against a real
 * one. */
#include "test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "providers/aws/instances/sql.h"

enum { LOCAL_FILES = 0x80, WISHES_AT = 4, WISHES_SIZE = 36 };

struct server {
	int           listening;
	unsigned char wishes[WISHES_SIZE]; /* the first packet of the client */
	ssize_t       got;
};

/* It can do everything, and says no more than that. */
static void *greet(void *arg)
{
	static const char      greeting[] = "\x0a"
	                                    "10.6.0\0"
	                                    "\1\0\0\0"
	                                    "abcdefgh\0"
	                                    "\xff\xff\x2d\2\0\x08\0\x15"
	                                    "\0\0\0\0\0\0\0\0\0\0"
	                                    "abcdefghijkl\0"
	                                    "mysql_native_password";
	const char             head[] = { sizeof(greeting), 0, 0, 0 };
	struct server         *s = arg;
	CLEANUP(fd_closep) int fd = accept(s->listening, NULL, NULL);

	if (fd >= 0 && file_write_all(fd, str_of(head, sizeof(head))) &&
	    file_write_all(fd, str_of(greeting, sizeof(greeting))))
		s->got = recv(fd, s->wishes, sizeof(s->wishes), MSG_WAITALL);
	return NULL;
}

/* A server may answer any statement by asking for a file. */
TEST(a_server_is_offered_no_file_of_ours)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          size = sizeof(at);
	struct server      s = { .listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	struct arena       a = { 0 };
	struct sql_options o = { .user = STR("admin"), .password = STR("secret") };
	struct sql        *sql = NULL;
	pthread_t          thread;

	CHECK(bind(s.listening, (struct sockaddr *)&at, size) == 0 && listen(s.listening, 1) == 0 &&
	      getsockname(s.listening, (struct sockaddr *)&at, &size) == 0);
	CHECK(pthread_create(&thread, NULL, greet, &s) == 0);
	o.host = str_format(&a, "127.0.0.1:%d", ntohs(at.sin_port));
	CHECK(sql_begin(NULL) == RC_OK && sql_open(&o, &sql, NULL) != RC_OK);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(s.got == WISHES_SIZE && !(s.wishes[WISHES_AT] & LOCAL_FILES));
	close(s.listening);
	arena_fini(&a);
}

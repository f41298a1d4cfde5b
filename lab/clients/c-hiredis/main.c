// Uses the server as users of hiredis do. hiredis has no URLs, pools or automatic reconnection: its users write them like
// this.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>
#ifdef HAVE_TLS
#include <hiredis/hiredis_ssl.h>
#endif

#define SCRIPT "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
#define SCRIPT_SHA1 "c305b0c988f72d6d6e22c904bcc0d535ed68b2a4"
#define DAY_SECONDS 86400 // a period so long that no unit leaks during a check
#define WORKERS 8
#define CALLS 100

static const struct timeval timeout = {.tv_sec = 10};

static bool failed; // whether a check has

// A check's result: why it failed, or "".
static char why[512];

__attribute__((format(printf, 1, 2))) static bool fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	return false;
}

static void report(const char *check, bool ok)
{
	if (ok) {
		printf("{\"check\": \"%s\", \"ok\": true}\n", check);
	} else {
		for (char *c = why; *c; c++) // must be escaped in JSON
			if (*c == '"' || *c == '\\' || *c < ' ')
				*c = '\'';
		printf("{\"check\": \"%s\", \"error\": \"%s\"}\n", check, why);
		failed = true;
	}
	fflush(stdout);
}

struct address {
	char host[64], password[64];
	int port, database;
};

static bool parse_url(const char *url, struct address *a)
{
	char encoded[64];
	a->database = 0;
	int n = sscanf(url, "%*[a-z]://:%63[^@]@%63[^:]:%d/%d", encoded, a->host, &a->port, &a->database);
	if (n < 3)
		return fail("not a URL: %s", url);
	char *to = a->password;
	for (char *from = encoded; *from; to++) {
		unsigned byte;
		if (*from == '%' && sscanf(from + 1, "%2x", &byte) == 1) {
			*to = (char)byte;
			from += 3;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return true;
}

static redisReply *command(redisContext *c, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	redisReply *reply = redisvCommand(c, format, args);
	va_end(args);
	if (!reply)
		fail("%s", c->errstr);
	return reply;
}

// answers_ok expects +OK in reply to a command.
static bool answers_ok(redisReply *reply)
{
	if (!reply)
		return false;
	bool ok = reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
	if (!ok)
		fail("reply of type %d: %s", reply->type, reply->str ? reply->str : "");
	freeReplyObject(reply);
	return ok;
}

// log_in authenticates and selects the database.
static bool log_in(redisContext *c, const struct address *a)
{
	return answers_ok(command(c, "AUTH %s", a->password)) && answers_ok(command(c, "SELECT %d", a->database));
}

static redisContext *dial(const struct address *a)
{
	redisContext *c = redisConnectWithTimeout(a->host, a->port, timeout);
	if (c && !c->err && redisSetTimeout(c, timeout) == REDIS_OK)
		return c;
	fail("connect: %s", c ? c->errstr : "no memory");
	if (c)
		redisFree(c);
	return NULL;
}

static redisContext *open_url(const char *url)
{
	struct address a;
	if (!parse_url(url, &a))
		return NULL;
	redisContext *c = dial(&a);
	if (c && !log_in(c, &a)) {
		redisFree(c);
		return NULL;
	}
	return c;
}

// begins expects five integers that begin with n of these, and does not free the reply.
static bool begins(const redisReply *reply, size_t n, const long long *want)
{
	if (!reply)
		return false;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5)
		return fail("reply of type %d: %s", reply->type, reply->str ? reply->str : "");
	for (size_t i = 0; i < n; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER || reply->element[i]->integer != want[i])
			return fail("element %zu is %lld, want %lld", i, reply->element[i]->integer, want[i]);
	return true;
}

// is_fresh expects the reply to 15 30 60 for a new key, and frees it.
static bool is_fresh(redisReply *reply)
{
	bool ok = begins(reply, 5, (const long long[]){0, 16, 15, -1, 2});
	freeReplyObject(reply);
	return ok;
}

static bool throttle_fresh(redisContext *c, const char *key)
{
	return is_fresh(command(c, "CL.THROTTLE %s 15 30 60", key));
}

static bool throttle_at(const char *url, const char *key)
{
	redisContext *c = open_url(url);
	if (!c)
		return false;
	bool ok = throttle_fresh(c, key);
	redisFree(c);
	return ok;
}

static bool check_url(redisContext *c)
{
	redisReply *reply = command(c, "PING");
	bool ok = reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0;
	if (reply && !ok)
		fail("PING gives a reply of type %d", reply->type);
	freeReplyObject(reply);
	return ok;
}

#ifdef HAVE_TLS
// over_tls verifies with the authorities in a file or, if it is NULL, the system's.
static bool over_tls(const char *ca)
{
	struct address a;
	redisSSLContextError error = REDIS_SSL_CTX_NONE;
	if (!parse_url(getenv("REDIS_TLS_URL"), &a))
		return false;
	redisSSLContext *tls = redisCreateSSLContext(ca, ca ? NULL : "/etc/ssl/certs", NULL, NULL, a.host, &error);
	if (!tls)
		return fail("TLS: %s", redisSSLContextGetError(error));
	redisContext *c = dial(&a);
	bool ok = c != NULL;
	if (ok && redisInitiateSSLWithContext(c, tls) != REDIS_OK)
		ok = fail("TLS: %s", c->errstr);
	ok = ok && log_in(c, &a) && throttle_fresh(c, "tls");
	if (c)
		redisFree(c);
	redisFreeSSLContext(tls);
	return ok;
}

static bool check_tls(void)
{
	redisInitOpenSSL();
	if (over_tls(NULL))
		return fail("connected without the authority");
	if (!strstr(why, "certificate verify failed"))
		return false;
	return over_tls(getenv("REDIS_CA"));
}
#endif

static bool check_pipeline(redisContext *c)
{
	for (int i = 0; i < CALLS; i++)
		redisAppendCommand(c, "CL.THROTTLE pipeline 49 1 %d", DAY_SECONDS);
	bool ok = true;
	for (int i = 0; i < CALLS; i++) {
		redisReply *reply = NULL;
		if (redisGetReply(c, (void **)&reply) != REDIS_OK)
			return fail("%s", c->errstr);
		ok = ok && begins(reply, 3, (const long long[]){i / 50, 50, i < 50 ? 49 - i : 0});
		freeReplyObject(reply);
	}
	return ok;
}

static bool queued(redisReply *reply)
{
	bool ok = reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "QUEUED") == 0;
	if (reply && !ok)
		fail("want QUEUED: reply of type %d", reply->type);
	freeReplyObject(reply);
	return ok;
}

static bool check_transaction(redisContext *c)
{
	const long long want[3][3] = {{0, 2, 1}, {0, 2, 0}, {1, 2, 0}};
	bool ok = answers_ok(command(c, "MULTI"));
	for (int i = 0; i < 3; i++)
		ok = ok && queued(command(c, "CL.THROTTLE transaction 1 1 %d", DAY_SECONDS));
	redisReply *reply = ok ? command(c, "EXEC") : NULL;
	if (reply && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3))
		ok = fail("EXEC gives a reply of type %d", reply->type);
	ok = ok && reply;
	for (int i = 0; ok && i < 3; i++)
		ok = begins(reply->element[i], 3, want[i]);
	freeReplyObject(reply);
	return ok;
}

// watched runs a transaction on a watched key, which another connection may write meanwhile.
static redisReply *watched(redisContext *c, redisContext *other)
{
	if (!answers_ok(command(c, "WATCH watch")))
		return NULL;
	if (other)
		freeReplyObject(command(other, "CL.THROTTLE watch 15 1 %d", DAY_SECONDS));
	if (!answers_ok(command(c, "MULTI")) || !queued(command(c, "CL.THROTTLE watch 15 1 %d", DAY_SECONDS)))
		return NULL;
	return command(c, "EXEC");
}

// check_watch expects a transaction to abort because another connection wrote its key, and then one to succeed.
static bool check_watch(redisContext *c)
{
	redisContext *other = open_url(getenv("REDIS_URL"));
	if (!other)
		return false;
	redisReply *reply = watched(c, other);
	redisFree(other);
	bool ok = reply && reply->type == REDIS_REPLY_NIL;
	if (reply && !ok)
		fail("EXEC gives a reply of type %d though the key was written", reply->type);
	freeReplyObject(reply);
	if (!ok)
		return false;
	reply = watched(c, NULL);
	if (reply && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1))
		ok = fail("EXEC gives a reply of type %d", reply->type);
	ok = ok && reply && begins(reply->element[0], 3, (const long long[]){0, 16, 14});
	freeReplyObject(reply);
	return ok;
}

// check_evalsha loads the script if the server does not have it, as hiredis's users do.
static bool check_evalsha(redisContext *c)
{
	redisReply *reply = command(c, "EVALSHA %s 1 evalsha 15 30 60", SCRIPT_SHA1);
	bool ok = reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
	if (reply && !ok)
		fail("EVALSHA gives a reply of type %d, want NOSCRIPT", reply->type);
	freeReplyObject(reply);
	reply = ok ? command(c, "SCRIPT LOAD %s", SCRIPT) : NULL;
	if (reply && (reply->type != REDIS_REPLY_STRING || strcmp(reply->str, SCRIPT_SHA1) != 0))
		ok = fail("SCRIPT LOAD gives %s", reply->str ? reply->str : "no text");
	ok = ok && reply;
	freeReplyObject(reply);
	return ok && is_fresh(command(c, "EVALSHA %s 1 evalsha 15 30 60", SCRIPT_SHA1));
}

// work makes its calls on its own connection, and returns how many were allowed, or -1.
static void *work(void *unused)
{
	(void)unused;
	redisContext *c = open_url(getenv("REDIS_URL"));
	if (!c)
		return (void *)-1L;
	long passed = 0;
	for (int i = 0; i < CALLS && passed >= 0; i++) {
		redisReply *reply = command(c, "CL.THROTTLE pool 99 1 %d", DAY_SECONDS);
		if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 5)
			passed = -1;
		else
			passed += reply->element[0]->integer == 0;
		freeReplyObject(reply);
	}
	redisFree(c);
	return (void *)passed;
}

static bool check_pool(void)
{
	pthread_t workers[WORKERS];
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, work, NULL) != 0)
			return fail("no thread");
	long passed = 0;
	bool ok = true;
	for (int i = 0; i < WORKERS; i++) {
		void *result;
		pthread_join(workers[i], &result);
		ok = ok && (long)result >= 0;
		passed += (long)result;
	}
	if (!ok)
		return fail("a worker failed");
	return passed == 100 || fail("%ld calls passed, want 100", passed);
}

static bool check_wrong_password(void)
{
	struct address a;
	if (!parse_url(getenv("REDIS_URL"), &a))
		return false;
	strcpy(a.password, "not it");
	redisContext *c = dial(&a);
	if (!c)
		return false;
	redisReply *reply = command(c, "AUTH %s", a.password);
	bool ok = reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGPASS", 9) == 0;
	if (reply && !ok)
		fail("reply of type %d, want WRONGPASS", reply->type);
	freeReplyObject(reply);
	redisFree(c);
	return ok;
}

static bool check_reconnect(redisContext *c)
{
	char line[32];
	puts("RESTART");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin) || strcmp(line, "restarted\n") != 0)
		return fail("no restart");
	redisReply *reply = redisCommand(c, "PING");
	if (reply) {
		freeReplyObject(reply);
		return fail("the old connection still answers");
	}
	struct address a;
	if (!parse_url(getenv("REDIS_URL"), &a))
		return false;
	if (redisReconnect(c) != REDIS_OK)
		return fail("reconnect: %s", c->errstr);
	return log_in(c, &a) && throttle_fresh(c, "reconnect");
}

int main(void)
{
	printf("{\"version\": \"%d.%d.%d\"}\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	redisContext *c = open_url(getenv("REDIS_URL"));
	if (!c) {
		fprintf(stderr, "c-hiredis: %s\n", why);
		return 1;
	}
	report("url", check_url(c));
#ifdef HAVE_TLS
	report("tls", check_tls());
#else
	puts("{\"check\": \"tls\", \"skip\": \"hiredis has TLS since 1.0 only\"}");
#endif
	report("throttle", throttle_fresh(c, "throttle"));
	report("pipeline", check_pipeline(c));
	report("transaction", check_transaction(c));
	report("watch", check_watch(c));
	report("evalsha", check_evalsha(c));
	report("eval", is_fresh(command(c, "EVAL %s 1 eval 15 30 60", SCRIPT)));
	report("pool", check_pool());
	report("wrong password", check_wrong_password());
	report("database", throttle_fresh(c, "database") && throttle_at(getenv("REDIS_DB3_URL"), "database"));
	report("reconnect", check_reconnect(c));
	redisFree(c);
	return failed;
}

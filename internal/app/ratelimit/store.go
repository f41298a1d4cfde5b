package ratelimit

import (
	"cmp"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

const alone = "each replica counts alone; n replicas allow n times the limit; run one, or set " + UseRedis +
	"=true for replicas that count together in the Redis of REDIS_URL"

// store makes Redis the store if that is asked for.
func (t *translation) store() {
	switch backend := t.text("BACKEND_TYPE"); {
	case backend != "" && backend != "redis" && backend != "memcache":
		t.fail(mistake("BACKEND_TYPE", "redis", backend))
		return
	case t.isOwn("store"):
		return
	case backend == "memcache":
		t.options.Warnings = append(t.options.Warnings, "BACKEND_TYPE=memcache has no effect: counts are in memory; "+
			"each replica counts alone; n replicas allow n times the limit")
	}
	given, _ := t.own(UseRedis)
	use, err := strconv.ParseBool(cmp.Or(given, "false"))
	switch {
	case err != nil:
		t.fail(mistake(UseRedis, truth.takes(), given))
	case use && !t.given["REDIS_URL"]:
		t.fail(errors.New(UseRedis + " requires REDIS_URL; set it, such as redis:6379, or CELLSERVER_STORE"))
	case use:
		t.redis()
	case t.given["REDIS_URL"] && t.text("REDIS_URL") != "" && t.text("BACKEND_TYPE") != "memcache":
		t.options.Warnings = append(t.options.Warnings, "the Redis of REDIS_URL is not used: "+alone)
	}
}

func (t *translation) redis() {
	r, err := t.redisServers()
	if err != nil {
		t.fail(err)
		return
	}
	t.set("store", r, "REDIS_URL")
	t.setGiven("key-prefix", "CACHE_KEY_PREFIX")
	if t.truth("REDIS_PERSECOND") {
		t.fail(errors.New("REDIS_PERSECOND has no counterpart, as there is one store; unset it"))
	}
	if t.text("REDIS_SENTINEL_AUTH") != "" && !t.isOwn("store-sentinel-password-file") {
		t.fail(errors.New("REDIS_SENTINEL_AUTH has no counterpart; write the password into a file, and set CELLSERVER_STORE_SENTINEL_PASSWORD_FILE"))
	}
	if !t.truth("REDIS_TLS") {
		return
	}
	t.setGiven("store-tls-ca", "REDIS_TLS_CACERT")
	t.setPair("store-tls-", "REDIS_TLS_CLIENT_")
	if t.truth("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION") && !t.isOwn("store-tls-server-name") {
		t.fail(errors.New("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION has no counterpart; set CELLSERVER_STORE_TLS_SERVER_NAME to the name in the servers' certificates"))
	}
}

// redisServers returns the URL of the store. No error has a part of REDIS_URL, which may have a password.
func (t *translation) redisServers() (string, error) {
	kind, hosts, master := strings.ToUpper(t.text("REDIS_TYPE")), strings.Split(t.text("REDIS_URL"), ","), ""
	scheme := map[string]string{"SINGLE": "", "CLUSTER": "-cluster", "SENTINEL": "-sentinel"}
	suffix, ok := scheme[kind]
	switch {
	case !ok:
		return "", mistake("REDIS_TYPE", "SINGLE, CLUSTER or SENTINEL", t.text("REDIS_TYPE"))
	case kind == "SINGLE" && len(hosts) > 1:
		return "", errors.New("REDIS_URL has several servers; set REDIS_TYPE to CLUSTER or SENTINEL")
	case kind == "SINGLE" && t.text("REDIS_SOCKET_TYPE") != "tcp":
		return "", errors.New("the store is not reached over a unix socket; set REDIS_SOCKET_TYPE=tcp, and REDIS_URL to host:port")
	case kind == "SENTINEL":
		if len(hosts) < 2 {
			return "", errors.New("REDIS_URL must have the master's name and the sentinels, such as mymaster,host:26379,host2:26379")
		}
		master, hosts = "/"+hosts[0], hosts[1:]
	}
	login, db := t.login(), ""
	for i, host := range hosts {
		var own string
		if hosts[i], own, db, ok = redisServer(host); !ok {
			return "", errors.New("REDIS_URL must be host:port, or redis://user:password@host:port/database; special characters of a password are written as %40")
		}
		login = cmp.Or(login, own)
	}
	name := "redis"
	if t.truth("REDIS_TLS") {
		name = "rediss"
	}
	if login != "" {
		login += "@"
	}
	return name + suffix + "://" + login + strings.Join(hosts, ",") + master + db, nil
}

// login returns user:password of REDIS_AUTH as a URL has them.
func (t *translation) login() string {
	user, password, ok := strings.Cut(t.text("REDIS_AUTH"), ":")
	switch {
	case !ok && user == "":
		return ""
	case !ok:
		user, password = "", user
	}
	return url.UserPassword(user, password).String()
}

// redisServer splits one server of REDIS_URL into host:port, user:password and /database.
func redisServer(given string) (host, login, db string, ok bool) {
	rest, isURL := strings.CutPrefix(given, "redis://")
	if !isURL {
		return given, "", "", given != "" && !strings.ContainsAny(given, "/@")
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || strings.ContainsAny(rest, "?#") {
		return "", "", "", false
	}
	if u.User != nil {
		password, _ := u.User.Password()
		login = url.UserPassword(u.User.Username(), password).String()
	}
	return u.Host, login, strings.TrimSuffix(u.Path, "/"), true
}

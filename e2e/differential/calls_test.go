package differential

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"hash/crc64"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// callMaker generates calls of the commands common to both servers.
type callMaker struct {
	*rand.Rand
	grammar *grammar
	// extends permits commands that change an expiry, or make a key a value that only Redis keeps. No key is
	// watched then: Redis counts these as modifications.
	extends bool
	// values permits the commands of values; no key is a limiter's then.
	values bool
}

func (m *callMaker) pick(choices ...string) string { return choices[m.IntN(len(choices))] }

func databases() []string { return []string{"0", "1", "15"} }

func keyNames() []string {
	return []string{"a", "ab", "b", "key:1", "key:2", "a b", "", "\x00\xff\r\n"}
}

func (m *callMaker) database() string { return m.pick(databases()...) }

func (m *callMaker) key() string { return m.pick(keyNames()...) }

func (m *callMaker) pattern() string {
	return m.pick("*", "a*", "?", "key:[12]", "key:[^1]", `\a*`, "", "[a-b]", "nosuch*", "*b", "[")
}

// call returns a call that neither blocks nor stops a server, and after which the keys can be equal.
func (m *callMaker) call(c *twin) []string {
	for {
		var call []string
		switch n := m.IntN(10); {
		case n < 5:
			call = m.known()
		case n < 8:
			call = m.grammar.call(m)
		default:
			call = m.spoil(m.pickCall())
		}
		for i := range call {
			if i < 2 || isToken(call[i]) {
				call[i] = m.anyCase(call[i])
			}
		}
		if !m.avoids(c, call) {
			return call
		}
	}
}

func (m *callMaker) pickCall() []string {
	if m.IntN(2) == 0 {
		return m.known()
	}
	return m.grammar.call(m)
}

func isToken(word string) bool {
	return len(word) > 1 && !strings.ContainsFunc(word, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// anyCase changes the case of single words.
func (m *callMaker) anyCase(word string) string {
	switch {
	case slices.Contains(keyNames(), word) || strings.HasPrefix(word, "{"):
		return word
	case m.IntN(3) == 0:
		return strings.ToLower(word)
	case m.IntN(10) == 0 && isToken(word):
		return word[:1] + strings.ToLower(word[1:])
	}
	return word
}

// known returns a valid call. Its placeholders are K, P, D, N, W, S, H, V and R.
func (m *callMaker) known() []string {
	words := m.server()
	if m.IntN(5) < 2 {
		words = m.keyspace()
	}
	return m.fill(strings.Fields(words))
}

func (m *callMaker) keyspace() string {
	return m.pick("GET K", "GET K", "STRLEN K", "TYPE K", "TTL K", "PTTL K", "EXPIRETIME K", "PEXPIRETIME K", "EXISTS K K K", "TOUCH K K",
		"DEL K", "DEL K K", "UNLINK K K K", "EXPIRE K N", "PEXPIRE K N", "EXPIREAT K N", "PEXPIREAT K N", "EXPIRE K -1",
		"EXPIREAT K 8999999999 GT", "PEXPIREAT K 5 LT", "EXPIRE K 100 NX", "EXPIRE K 100 XX", "PERSIST K", "OBJECT ENCODING K",
		"MEMORY USAGE K", "MEMORY USAGE K SAMPLES 5", "DUMP K", "DUMP K", "SET K V", "SET K V GET", "SET K V NX", "SET K V XX GET", "SET K V NX GET EX N",
		"SET K V PX 5000", "SET K V XX EXAT 8999999999", "SET K V KEEPTTL GET", "SET K W", "SET K N XX", "RESTORE K 0 R", "RESTORE K N R REPLACE",
		"RESTORE K 0 R REPLACE IDLETIME N", "RESTORE K 5000 R FREQ N", "RESTORE K 0 W REPLACE", "RESTORE K 8999999999999 R REPLACE ABSTTL",
		"DBSIZE", "KEYS P", "SCAN 0 COUNT 1000", "SCAN 0 MATCH P COUNT 1000", "SCAN N", "SCAN 0 TYPE string COUNT 500",
		"SCAN 0 TYPE hash COUNT 500", "WATCH K", "WATCH K K", "UNWATCH", "MULTI", "EXEC", "EXEC", "EVAL S 1 K", "EVAL S 2 K K W", "SELECT D",
		"INCR K", "INCRBY K N", "DECR K", "INCRBYFLOAT K N", "GETDEL K", "GETSET K W", "MSETNX K N K W", "GETEX K PXAT 8999999999999", "SETNX K W", "MSET K N K W", "MGET K K K",
		"RENAME K K", "RENAMENX K K")
}

func (m *callMaker) server() string {
	return m.pick(
		"FLUSHDB", "FLUSHALL SYNC", "FLUSHDB ASYNC",
		"SELECT D", "SELECT D", "SELECT N", "PING", "PING W", "ECHO W", "MULTI", "MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "EXEC",
		"DISCARD", "WATCH K", "WATCH K K", "WATCH K", "UNWATCH", "RESET", "QUIT", "TIME", "ROLE", "LASTSAVE",
		"HELLO", "HELLO 2", "HELLO 3", "HELLO 3", "HELLO 3 SETNAME W", "HELLO 2 AUTH dave x", "HELLO 3 AUTH default sesame",
		"AUTH default sesame", "AUTH default sesame", "AUTH default sesame", "AUTH sesame", "AUTH alice wonderland", "AUTH bob builder",
		"AUTH carol sesame", "AUTH alice W", "AUTH dave x", "AUTH nobody x",
		"EVAL S 1 K", "EVAL S 1 K", "EVAL S 2 K K W", "EVAL S 0", "EVAL_RO S 1 K W", "EVALSHA H 1 K", "EVALSHA_RO H 1 K W",
		"EVALSHA W 0", "EVAL S N", "SCRIPT LOAD S", "SCRIPT EXISTS H H", "SCRIPT FLUSH", "SCRIPT FLUSH ASYNC", "SCRIPT KILL",
		"CLIENT ID", "CLIENT INFO", "CLIENT LIST", "CLIENT LIST ID {id} {other}", "CLIENT LIST TYPE normal", "CLIENT LIST TYPE replica",
		"CLIENT GETNAME", "CLIENT SETNAME W", "CLIENT KILL {other}", "CLIENT KILL ID {other}", "CLIENT KILL {addr}",
		"CLIENT KILL LADDR {laddr} ID {id} SKIPME no", "CLIENT KILL USER alice", "CLIENT KILL USER nobody", "CLIENT KILL ID N",
		"CLIENT KILL TYPE W", "CLIENT NO-EVICT on", "CLIENT NO-EVICT off", "CLIENT UNBLOCK {other}", "CLIENT UNBLOCK {id} ERROR", "CLIENT UNBLOCK N",
		"CLIENT TRACKING off", "CLIENT TRACKING on OPTIN", "CLIENT TRACKING on OPTIN", "CLIENT TRACKING off OPTOUT NOLOOP BCAST PREFIX W",
		"CLIENT TRACKING W OPTIN", "CLIENT TRACKING on W", "CLIENT TRACKING on OPTIN W", "CLIENT TRACKING off REDIRECT",
		"CLIENT TRACKINGINFO", "CLIENT GETREDIR", "CLIENT CACHING NO", "CLIENT CACHING W", "CLIENT REPLY W",
		"ACL WHOAMI", "ACL LIST", "ACL USERS", "ACL GETUSER alice", "ACL GETUSER dave", "ACL GETUSER default", "ACL GETUSER nobody",
		"ACL CAT", "ACL CAT read", "ACL CAT W", "ACL CAT keyspace", "ACL DRYRUN alice GET K", "ACL DRYRUN dave DEL K", "ACL DRYRUN bob W",
		"ACL DRYRUN dave EXISTS K K", "ACL DRYRUN alice EVAL S 1 K", "ACL DRYRUN carol GET", "ACL LOG", "ACL LOG 1", "ACL LOG RESET",
		"ACL LOG N", "ACL GENPASS", "ACL GENPASS 5", "ACL GENPASS N", "ACL LOAD",
		"COMMAND GETKEYS GET K", "COMMAND GETKEYS DEL K K", "COMMAND GETKEYS EVAL x 2 K K K", "COMMAND GETKEYS EVAL x N K", "COMMAND GETKEYS PING x",
		"COMMAND GETKEYSANDFLAGS DEL K K", "COMMAND GETKEYSANDFLAGS SET K V NX", "COMMAND GETKEYSANDFLAGS SET K V PX N GET", "COMMAND GETKEYSANDFLAGS WATCH K K", "COMMAND GETKEYSANDFLAGS OBJECT ENCODING K",
		"COMMAND GETKEYS MEMORY USAGE K", "COMMAND GETKEYS W a", "COMMAND INFO GET", "COMMAND INFO W PING client|id", "COMMAND COUNT",
		"COMMAND LIST", "COMMAND LIST FILTERBY ACLCAT W", "COMMAND LIST FILTERBY ACLCAT connection", "COMMAND LIST FILTERBY PATTERN P",
		"COMMAND LIST FILTERBY MODULE W", "COMMAND DOCS GET", "COMMAND DOCS W", "COMMAND",
		"CONFIG GET databases", "CONFIG GET time*", "CONFIG GET databases DATABASES", "CONFIG GET W", "CONFIG GET maxclients save W",
		"CONFIG SET timeout 500", "CONFIG SET timeout N", "CONFIG SET maxclients 500", "CONFIG SET W 1", "CONFIG SET databases 5",
		"CONFIG SET timeout 100 timeout 200", "CONFIG SET timeout 100 W 2", "CONFIG SET timeout", "CONFIG SET timeout 100 maxclients", "CONFIG RESETSTAT",
		"INFO", "INFO server", "INFO W", "INFO keyspace", "INFO clients W cpu", "MODULE LIST", "MEMORY PURGE",
		"LATENCY LATEST", "LATENCY HISTORY W", "LATENCY RESET", "LATENCY RESET W", "WAIT 0 0", "WAIT 1 1", "WAIT x 0", "WAIT 0 x", "WAIT 0 -1", "WAIT -1 0",
		"DEBUG SLEEP 0", "DEBUG SLEEP", "DEBUG W", "DEBUG PROTOCOL string", "DEBUG PROTOCOL integer", "DEBUG PROTOCOL double", "DEBUG PROTOCOL null",
		"DEBUG PROTOCOL array", "DEBUG PROTOCOL set", "DEBUG PROTOCOL map", "DEBUG PROTOCOL attrib", "DEBUG PROTOCOL bignum", "DEBUG PROTOCOL true",
		"DEBUG PROTOCOL false", "DEBUG PROTOCOL verbatim", "DEBUG PROTOCOL W", "SHUTDOWN W", "SHUTDOWN ABORT", "SHUTDOWN ABORT NOW",
		"SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT NOSAVE", "REPLICAOF NO ONE", "SLAVEOF NO ONE", "W", "W a b", "W K")
}

func (m *callMaker) fill(words []string) []string {
	for i, word := range words {
		switch word {
		case "K":
			words[i] = m.key()
		case "P":
			words[i] = m.pattern()
		case "D":
			words[i] = m.database()
		case "N":
			words[i] = m.number()
		case "W":
			words[i] = m.word()
		case "V":
			words[i] = m.tat()
		case "R":
			words[i] = m.payload()
		case "S":
			words[i] = m.script()
		case "H":
			sum := sha1.Sum([]byte(m.script()))
			words[i] = hex.EncodeToString(sum[:])
		}
	}
	return words
}

// number returns text that may be parsed as a number.
func (m *callMaker) number() string {
	return m.pick("0", "1", "2", "3", "-1", "-0", "00", "+1", "", "x", "1.5", "1e3", " 1", "0x1", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "2147483648", "4294967296", "-2147483649", "99999999999999999999", strconv.Itoa(m.IntN(100)))
}

// tat returns a value that both servers keep for at least an hour.
func (m *callMaker) tat() string {
	return strconv.FormatInt(time.Now().Add(time.Hour+time.Duration(m.IntN(1e9))).UnixNano(), 10)
}

// payload returns one of DUMP, mostly of a value that both servers keep.
func (m *callMaker) payload() string {
	value := m.tat()
	b := append([]byte{0, byte(len(value))}, value...)
	if m.IntN(8) == 0 {
		b = []byte{0, 0xc0, byte(m.IntN(256))} // an integer of one byte
	}
	b = append(b, 10, 0) // the version
	table := crc64.MakeTable(0x95ac9329ac4bc9b5)
	return string(binary.LittleEndian.AppendUint64(b, ^crc64.Update(^uint64(0), table, b)))
}

// word returns a meaningless word.
func (m *callMaker) word() string {
	return m.pick("nosuch", "NoSuch", "no such", "", "x", "grün", "a\r\nb", "a,b", "%s", "'", `"`, "a|b", "client|nosuch", "get|set",
		strings.Repeat("w", 1+m.IntN(60)))
}

func (m *callMaker) script() string {
	return m.pick("return redis.call('GET', KEYS[1])", "return {redis.call('EXISTS', KEYS[1]), redis.call('TYPE', KEYS[1])}",
		"return redis.call('DEL', unpack(KEYS))", "return redis.pcall('GET')", "return redis.call('GET')", "return redis.call('NOSUCH')",
		"return redis.error_reply('MY error')", "return redis.status_reply('fine')", "return ARGV", "return #KEYS", "return 3.7", "return nil",
		"return {1, nil, 3}", "return tostring(1e15)", "return redis.sha1hex(ARGV[1] or '')", "a syntax error(", "return redis.call('STRLEN', KEYS[1])",
		"return cjson.encode({1, 2, {a = ARGV[1]}})", "redis.call('SELECT', '1') return redis.call('PING')", "return redis.call('PING')",
		"return redis.call('ECHO', ARGV[1])", "return redis.call('AUTH', 'x')", "return redis.call('EXPIRE', KEYS[1], -1)", "return redis.call()",
		"return redis.pcall('PEXPIREAT', KEYS[1], 'x')", "redis.setresp(3) return redis.call('GET', KEYS[1])", "return nosuch", "nosuch = 1",
		"return redis.call('UNLINK', KEYS[1]) == 1", "error('thrown')", "error({err = 'MINE thrown'})", "return {ok = 'good', 1}", "return {err = 'bad'}",
		"return redis.call('MULTI')", "return redis.call('OBJECT', 'ENCODING', KEYS[1])", "return redis.call('OBJECT', 'NOSUCH')", "return {double = 1.5}",
		"redis.setresp(3) return {map = {a = 1}}", "#!lua flags=no-writes\nreturn redis.call('DEL', KEYS[1])", "#!lua\nreturn 1", "#!nosuch\nreturn 1",
		"return {redis.call('ACL', 'WHOAMI')}", "return redis.call('CLIENT', 'ID')", "return redis.pcall('TTL', KEYS[1])", "return string.rep('x', 100)")
}

func (m *callMaker) scanOptions() (options []string) {
	if m.IntN(2) == 0 {
		options = append(options, "MATCH", m.pattern())
	}
	if m.IntN(2) == 0 {
		options = append(options, "COUNT", m.pick("1", "2", "10", "1000"))
	}
	if m.IntN(4) == 0 {
		options = append(options, "TYPE", m.pick("string", "String", "hash", "nosuch"))
	}
	return options
}

// spoil mostly makes a call invalid.
func (m *callMaker) spoil(call []string) []string {
	at := m.IntN(len(call))
	switch n := m.IntN(5); {
	case n == 0 && len(call) > 1:
		return call[:max(1, at)]
	case n == 1:
		return append(call, m.pick(m.word(), m.number(), m.key()))
	case n == 2 && at > 0:
		call[at] = m.pick(m.word(), m.number())
	case n == 3:
		return slices.Insert(call, at+1, m.pick(m.word(), m.number(), m.key(), call[at]))
	default:
		return slices.Delete(call, at, min(at+1, len(call)-1))
	}
	return call
}

func (m *callMaker) avoids(c *twin, call []string) bool {
	name, sub := strings.ToLower(call[0]), ""
	if len(call) > 1 {
		sub = strings.ToLower(call[1])
	}
	if name != "client" && slices.ContainsFunc(call, func(word string) bool { return strings.HasPrefix(word, "{") }) {
		return true // an error may contain the client's ID
	}
	if !m.grammar.has(name, sub) || guessesKeys(call) {
		return true
	}
	switch {
	case endsSoon(call), m.values && expiresLater(call):
		return true // the keys' expiries are compared at the end
	case m.values && isExtension(call):
		return false
	}
	switch name {
	case "strlen", "getdel", "getset", "msetnx", "getex", "setnx", "setex", "psetex", "mget", "mset", "incr", "decr", "incrby", "decrby", "incrbyfloat", "rename", "renamenx":
		return !m.values // of a limiter they have other replies
	case "eval", "eval_ro":
		return !m.values && strings.Contains(sub, "strlen")
	case "set", "restore": // sync knows their keys
		return !m.extends || c.multi || len(call) > 1 && !slices.Contains(keyNames(), call[1])
	case "select": // sync knows their databases
		n, err := strconv.Atoi(sub)
		return err == nil && n >= 0 && n < 16 && !slices.Contains(databases(), strconv.Itoa(n))
	case "shutdown": // errors; so is an unknown word
		return !slices.Contains([]string{"abort", "nosuch", "x"}, sub) && (len(call) != 3 || sub != "save" || !strings.EqualFold(call[2], "nosave"))
	case "wait": // it may block in Redis
		return len(call) == 3 && sub != "0" && sub != "x" && call[2] != "1"
	case "replicaof", "slaveof":
		return len(call) == 3 && (sub != "no" || !strings.EqualFold(call[2], "one"))
	case "auth", "hello": // not in a transaction here
		return c.multi
	case "scan": // Redis reads the cursor up to a NUL
		return strings.Contains(sub, "\x00")
	case "watch":
		return m.extends
	case "publish", "subscribe", "unsubscribe": // there is one channel; see e2e/wire
		return true
	case "monitor": // it would report everything that follows
		return len(call) == 1
	case "slowlog", "latency": // their replies contain times
		return slices.Contains([]string{"get", "len", "histogram", "history", "latest"}, sub)
	case "debug":
		return len(call) > 2 && sub == "sleep" && call[2] != "0" || len(call) > 1 && sub != "sleep" && sub != "protocol" && !isUnknown(sub)
	case "client":
		if slices.ContainsFunc(call, isClientNumber) || strings.HasPrefix(sub, "{") {
			return true
		}
		return c.multi && sub == "kill" || sub == "reply" && len(call) == 3 && slices.Contains([]string{"off", "skip"}, strings.ToLower(call[2])) ||
			sub == "tracking" && tracks(call) || // it works at Redis
			sub == "caching" && len(call) == 3 && strings.EqualFold(call[2], "yes") // so does this
	case "acl":
		return c.multi && sub == "load" || sub == "dryrun" && len(call) > 3 && len(call[3]) > 60 // errors truncate it here
	case "memory":
		return c.multi && sub == "purge" // refused beside commands with keys
	case "script":
		return c.multi && (sub == "load" || sub == "flush") // refused, too
	case "config":
		return sub == "rewrite" || sub == "set" && (c.multi || setsTooLow(call)) || sub == "set" && len(call) > 3 && !slices.Contains([]string{"timeout", "maxclients", "databases"}, strings.ToLower(call[2])) && !isUnknown(call[2])
	}
	return isExtension(call) && (!m.extends || c.multi)
}

// tracks reports CLIENT TRACKING ON in another mode than OPTIN, or REDIRECT to a client.
func tracks(call []string) bool {
	if len(call) < 4 {
		return len(call) == 3 && strings.EqualFold(call[2], "on")
	}
	has := func(words []string, options ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(options, strings.ToLower(word)) })
	}
	return has(call[3:len(call)-1], "redirect") || strings.EqualFold(call[2], "on") && has(call[3:], "prefix", "bcast", "optout", "noloop")
}

// setsTooLow reports whether CONFIG SET could close or refuse the test's own connections, depending on the
// servers' speed.
func setsTooLow(call []string) bool {
	for i, name := range call[:len(call)-1] {
		if n, err := strconv.Atoi(call[i+1]); err == nil && n > 0 && n < 60 && (strings.EqualFold(name, "timeout") || strings.EqualFold(name, "maxclients")) {
			return true
		}
	}
	return false
}

// guessesKeys reports whether a script's number of keys is invalid but begins with a number: EVAL refuses it,
// and Redis checks permissions for that number first.
func guessesKeys(call []string) bool {
	at := slices.IndexFunc(call, func(word string) bool { return strings.HasPrefix(strings.ToLower(word), "eval") })
	if at < 0 || len(call) <= at+2 {
		return false
	}
	number := call[at+2]
	_, err := strconv.ParseInt(number, 10, 32)
	digits := strings.TrimLeft(number, " +")
	return (err != nil || digits != number) && digits != "" && digits[0] >= '1' && digits[0] <= '9'
}

// isClientNumber reports whether a word may be a client ID, which differs between the servers.
func isClientNumber(word string) bool {
	n, err := strconv.ParseInt(strings.TrimSpace(word), 0, 64)
	return err == nil && n > 0 && n < 100_000
}

func isUnknown(word string) bool {
	return word == "" || word == "x" || strings.EqualFold(word, "nosuch") || strings.HasPrefix(word, "ww")
}

// expiresLater reports whether a call may set an expiry that depends on its time.
func expiresLater(call []string) bool {
	relative := func(word string) bool { return strings.EqualFold(word, "ex") || strings.EqualFold(word, "px") }
	switch strings.ToLower(call[0]) {
	case "setex", "psetex":
		return true
	case "expire", "pexpire":
		return len(call) > 2 && !strings.HasPrefix(call[2], "-")
	case "set", "getex":
		return slices.ContainsFunc(call, relative)
	case "restore":
		return len(call) > 2 && call[2] != "0" && !slices.ContainsFunc(call, func(word string) bool { return strings.EqualFold(word, "absttl") })
	}
	return false
}

// isExtension reports whether a call may change an expiry, or make a key a value that only Redis keeps.
func isExtension(call []string) bool {
	switch name := strings.ToLower(call[0]); name {
	case "persist", "set", "restore":
		return true
	case "expire", "pexpire", "expireat", "pexpireat":
		if len(call) < 3 {
			return false
		}
		n, err := strconv.ParseInt(call[2], 10, 64)
		return err == nil && n > 0 && (!strings.HasSuffix(name, "at") || n > 1e9)
	}
	return false
}

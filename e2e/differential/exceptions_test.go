package differential

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// exception is a permitted difference, also listed in docs/COMPATIBILITY.md.
type exception struct {
	calls string // regular expression for the calls in lower case
	what  string // what may differ
	why   string
	// even equalizes the permitted part of two replies.
	even func(ours, redis value) (value, value)
}

// exceptions returns the whole list; common are the common commands' names.
func exceptions(common []string) []exception {
	names := evenNames(common)
	const passes, own = "time passes between the two replies", "each server has its own"
	return []exception{
		{`^p?ttl |^evalsha |^eval .*'ttl'`, "TTL and PTTL, slightly", passes, near},
		{`^time$`, "TIME", passes, typeOnly},
		{`^lastsave$`, "LASTSAVE", "each server has its own start", typeOnly},
		{`^client id$`, "CLIENT ID", own, typeOnly},
		{`^hello`, "the version, the id and the modules in HELLO's reply", own, each(evenHello)},
		{`^client list id`, "CLIENT LIST ID with the same ID more than once", "it is listed once; else a reply could be hundreds of times as long as its command", each(evenIDs)},
		{`^client (list|info)`, "all fields of CLIENT LIST and INFO except id, name, db, sub, psub, ssub, multi, cmd, user and resp", own + " connections and buffers, and after HELLO no CLIENT TRACKING here; here they have the fields of Redis 7.2", each(evenClients)},
		{`^info`, "INFO except the names of its sections, without Latencystats, and the number of keys of each database", own, each(evenInfo)},
		{`^config get`, "CONFIG GET of settings that only one has, or that have other defaults", "each server has its own settings", evenConfig},
		{`^memory usage`, "the result of MEMORY USAGE", own + " data structures", typeOnly},
		{`^(.* )?help( |$)`, "HELP", "each server has its own texts", typeOnly},
		{`^keys `, "the order of KEYS", "neither defines one", each(sorted)},
		{`^scan [-+]?0*( |$)`, "SCAN's cursors, and the keys that one call returns", "each server has its own cursors; complete iterations are compared", evenScan},
		{`^scan [-+]?0*[1-9]`, "SCAN with a cursor that it did not return", "each server has its own cursors", typeOnly},
		{`^set `, "SET of an integer that is no TAT, on a funnel", "it would end the limit without anybody meaning it; DEL it first", refusesValue},
		{"", "changes of a limiter's key by commands of values, by a user without @refill", "who may not CL.RESET a limiter must not remove it otherwise", needsRefill},
		{`^dump `, "DUMP of a limiter", "it has the whole state, not only a TAT", dumpsState},
		{`^persist `, "PERSIST of a key", "a limiter that never expires would stay full; only buckets may", typeOnly},
		{`^config set .*maxclients`, "the maximum in CONFIG SET maxclients' error", own, each(func(v value) value {
			v.text = regexp.MustCompile(`between 1 and \d+`).ReplaceAllString(v.text, "")
			return v
		})},
		{`^debug sleep`, "DEBUG SLEEP in a transaction", "it would sleep under locks", either},
		{`^module list$`, "MODULE LIST", "here it lists redis-cell", typeOnly},
		{`^acl genpass`, "ACL GENPASS", "it is random", each(func(v value) value {
			if v.typ == '$' {
				v.text = strings.Repeat("x", len(v.text))
			}
			return v
		})},
		{`^acl log`, "age-seconds and client-info in ACL LOG, and the last fields, of Redis 7.2", own, each(evenACLLog)},
		{`^(acl cat|command list)`, "commands that only one has in ACL CAT and COMMAND LIST", "each server has its own commands", each(names)},
		{`^acl (list|getuser)`, "the order of command rules in ACL LIST and GETUSER", "Redis lists them in the order of a hash table, and by its own commands", each(evenRules)},
		{`^client (trackinginfo|getredir|caching)`, "CLIENT TRACKINGINFO, GETREDIR and CACHING after HELLO with a version", "HELLO turns CLIENT TRACKING off", typeOnly},
		{`^command info`, "tips and notes in COMMAND INFO, flags of features that do not exist here, and the category @refill", "they are for MONITOR, the slow log, clusters and loading; @refill is in this server only", each(evenCommandInfo)},
		{`^command getkeys(andflags)? eval.*`, "COMMAND GETKEYS, and key permissions, of EVAL with an invalid number of keys", "Redis guesses which keys are meant", typeOnly},
		{`^(eval|script load)`, "the syntax error of a script that is not valid Lua", "each interpreter has its own texts", each(evenSyntax)},
		{"", "unprintable client bytes in errors and ACL DRYRUN", "they are escaped so that no reply can be forged", escaped},
		{`^command( count| info| docs)?$`, "COMMAND, COMMAND COUNT, and COMMAND INFO and DOCS of all commands", "each server has its own commands; those that both have are compared", typeOnly},
		{`^command docs`, "COMMAND DOCS except the commands' names", "each server has its own texts", each(evenDocs)},
	}
}

type uses struct {
	list     []exception
	patterns []*regexp.Regexp

	mu     sync.Mutex // guards counts
	counts []int
}

func newUses(common []string) *uses {
	u := &uses{list: exceptions(common)}
	u.counts = make([]int, len(u.list))
	for _, e := range u.list {
		u.patterns = append(u.patterns, regexp.MustCompile(`(?s)`+e.calls))
	}
	return u
}

func (u *uses) log(t *testing.T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, e := range u.list {
		t.Logf("%6d times: %s", u.counts[i], e.what)
	}
}

func (u *uses) except(call []string, ours, redis value) (value, value) {
	text := strings.ToLower(strings.Join(call, " "))
	for i, e := range u.list {
		if !u.patterns[i].MatchString(text) || ours.text == "QUEUED" {
			continue
		}
		a, b := e.even(ours, redis)
		if a.String() != ours.String() || b.String() != redis.String() {
			u.mu.Lock()
			u.counts[i]++
			u.mu.Unlock()
		}
		ours, redis = a, b
	}
	return ours, redis
}

func each(even func(value) value) func(ours, redis value) (value, value) {
	return func(ours, redis value) (value, value) { return even(ours), even(redis) }
}

func typeOnly(ours, redis value) (value, value) {
	if ours.typ == '-' || redis.typ == '-' {
		return ours, redis
	}
	return value{typ: ours.typ, null: ours.null}, value{typ: redis.typ, null: redis.null}
}

// near permits integers to differ by ten seconds.
func near(ours, redis value) (value, value) {
	const mostMs = 10_000
	a, err := strconv.Atoi(ours.text)
	b, err2 := strconv.Atoi(redis.text)
	if err == nil && err2 == nil && ours.typ == ':' && a > 0 && b > 0 && a-b <= mostMs && b-a <= mostMs {
		return redis, redis
	}
	return ours, redis
}

func without(v value, names ...string) value {
	if v.elems == nil {
		return v
	}
	var kept []value
	for i := 0; i+1 < len(v.elems); i += 2 {
		if !slices.Contains(names, v.elems[i].text) {
			kept = append(kept, v.elems[i], v.elems[i+1])
		}
	}
	v.elems, v.text = kept, ""
	return v
}

func evenHello(v value) value { return without(v, "version", "id", "modules") }

// evenIDs lists each client once.
func evenIDs(v value) value {
	var kept []string
	for line := range strings.Lines(v.text) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "txt:"), " ")
		if !slices.ContainsFunc(kept, func(other string) bool { return strings.HasPrefix(strings.TrimPrefix(other, "txt:"), id+" ") }) {
			kept = append(kept, line)
		}
	}
	v.text = strings.Join(kept, "")
	return v
}

func evenClients(v value) value {
	v.text = regexp.MustCompile(` (id|addr|laddr|fd|age|idle|flags|watch|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem|events|redir|lib-name|lib-ver)=[^ \n]*`).
		ReplaceAllString(regexp.MustCompile(`(?m)^(txt:)?id=`).ReplaceAllString(v.text, "$1 id="), "")
	return v
}

func evenInfo(v value) value {
	var kept []string
	for line := range strings.Lines(v.text) {
		if strings.HasPrefix(line, "db") {
			line, _, _ = strings.Cut(line, ",avg_ttl")
		}
		if strings.HasPrefix(line, "# L") {
			continue
		}
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "db") {
			kept = append(kept, line)
		}
	}
	v.text = strings.Join(kept, "\n")
	return v
}

// evenConfig keeps the common settings.
func evenConfig(ours, redis value) (value, value) {
	common := func(v, other value) value {
		kept := map[string]string{}
		for i := 0; i+1 < len(v.elems); i += 2 {
			name := v.elems[i].text
			if field(other, name).typ != 0 && !slices.Contains([]string{"aclfile", "dir", "lua-time-limit", "proto-max-bulk-len", "io-threads", "unixsocketperm", "unixsocket", "maxmemory-policy", "maxmemory-clients", "repl-backlog-size"}, name) {
				kept[name] = v.elems[i+1].text
			}
		}
		v.elems, v.text = nil, ""
		for name, text := range kept {
			v.elems = append(v.elems, value{text: name + "=" + text})
		}
		return sorted(v)
	}
	return common(ours, redis), common(redis, ours)
}

func sorted(v value) value {
	v.elems = slices.Clone(v.elems)
	sort.Slice(v.elems, func(i, j int) bool { return v.elems[i].String() < v.elems[j].String() })
	return v
}

func evenScan(ours, redis value) (value, value) {
	if len(ours.elems) != 2 || len(redis.elems) != 2 || ours.elems[0].text != "0" || redis.elems[0].text != "0" {
		return typeOnly(ours, redis)
	}
	return sorted(ours.elems[1]), sorted(redis.elems[1])
}

func evenACLLog(v value) value {
	entries := slices.Clone(v.elems)
	for i := range entries {
		entries[i] = without(entries[i], "age-seconds", "client-info", "entry-id", "timestamp-created", "timestamp-last-updated")
	}
	v.elems = entries
	return v
}

// evenNames keeps the common names, sorted.
func evenNames(common []string) func(value) value {
	return func(v value) value {
		v.elems = slices.DeleteFunc(slices.Clone(v.elems), func(name value) bool { return !slices.Contains(common, name.text) })
		v.text = ""
		return sorted(v)
	}
}

func evenDocs(v value) value {
	if v.elems == nil {
		return v
	}
	var names []value
	for i := 0; i < len(v.elems); i += 2 {
		names = append(names, v.elems[i])
	}
	return value{typ: v.typ, elems: names}
}

// either permits one server to refuse a call.
func either(ours, redis value) (value, value) {
	if ours.typ == '-' {
		return ours, ours
	}
	return ours, redis
}

// needsRefill permits our refusal to change a limiter.
func needsRefill(ours, redis value) (value, value) {
	if strings.Contains(ours.String(), refillHint) {
		return ours, ours
	}
	return ours, redis
}

// refillHint ends the error of who may not change a limiter.
const refillHint = "needs the right to CL.RESET it (+@refill)"

// dumpsState permits our DUMP of a limiter.
func dumpsState(ours, redis value) (value, value) {
	if strings.Contains(ours.text, "CELLSTAT") {
		return redis, redis
	}
	return ours, redis
}

// refusesValue permits our refusal of a value.
func refusesValue(ours, redis value) (value, value) {
	if strings.HasPrefix(ours.text, "ERR the key is a funnel's, and its value its TAT") {
		return ours, ours
	}
	return ours, redis
}

// escaped replaces bytes by spaces that Redis prints raw or as spaces, and cellserver escapes; Redis
// truncates at a NUL.
func escaped(ours, redis value) (value, value) {
	switch {
	case ours.typ != redis.typ || !strings.Contains(ours.text, `\`) || ours.typ != '-' && !strings.HasPrefix(ours.text, "This user has no "):
	case strings.Contains(ours.text, `\x00`):
		before, _, _ := strings.Cut(ours.text, `\x00`)
		if strings.HasPrefix(blankUnprintable(redis.text), blankUnprintable(before)) {
			return ours, ours
		}
	default:
		ours.text, redis.text = blankUnprintable(ours.text), blankUnprintable(redis.text)
	}
	return ours, redis
}

func evenRules(v value) value {
	if v.typ == '$' {
		words := strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(v.text))
		slices.Sort(words)
		v.text = strings.Join(words, " ")
	}
	v.elems = slices.Clone(v.elems)
	for i := range v.elems {
		v.elems[i] = evenRules(v.elems[i])
	}
	return v
}

// evenCommandInfo keeps the common facts about commands.
func evenCommandInfo(v value) value {
	v.elems = slices.Clone(v.elems) // nil stays nil
	for i, c := range v.elems {
		if len(c.elems) == 10 {
			c.elems = slices.Clone(c.elems)
			flags := c.elems[2]
			flags.elems = slices.DeleteFunc(slices.Clone(flags.elems), func(flag value) bool {
				return slices.Contains([]string{"allow_busy", "skip_monitor", "skip_slowlog", "no_async_loading", "no_multi", "denyoom"}, flag.text)
			})
			categories := c.elems[6]
			categories.elems = slices.DeleteFunc(slices.Clone(categories.elems), func(category value) bool { return category.text == "@refill" })
			c.elems[2], c.elems[6], c.elems[7] = flags, categories, value{}
			c.elems[8].elems = slices.Clone(c.elems[8].elems)
			for j := range c.elems[8].elems {
				c.elems[8].elems[j] = without(c.elems[8].elems[j], "notes")
			}
			c.elems[9] = value{} // subcommands are compared by their own names
		}
		v.elems[i] = c
	}
	return v
}

func evenSyntax(v value) value {
	if before, _, ok := strings.Cut(v.text, "user_script:"); ok && strings.HasPrefix(before, "ERR Error compiling script") {
		v.text = before
	}
	return v
}

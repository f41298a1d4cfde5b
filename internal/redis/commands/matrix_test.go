package commands_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// callWith returns a valid call of a command, with key as its keys and numbers elsewhere.
func callWith(c *catalog.Command, key string) []string {
	args := strings.Split(c.FullName(), "|")
	words := max(c.Arity, -c.Arity, len(args)+required(c))
	for len(args) < words {
		args = append(args, "1")
	}
	switch {
	case c.Keys.With > 0:
		args[c.Keys.Counted+1] = key
	case c.Keys.Counted > 0:
		args = append(args[:1], "return redis.call('exists', KEYS[1])", "1", key)
	case c.Keys.First > 0:
		args[c.Keys.First] = key
	case c.FullName() == "config|set":
		args[2] = "slowlog-max-len"
	case c.FullName() == "command|getkeys" || c.FullName() == "command|getkeysandflags":
		args[2], args[3] = "get", "1"
	}
	return args
}

// required returns the least number of arguments of a call whose arity allows any number.
func required(c *catalog.Command) (n int) {
	for _, a := range c.Args {
		if !a.Optional {
			n++
		}
	}
	return n
}

// keeping gives commands that need a disk one.
func keeping(t *testing.T) func(*commands.Config) {
	return commandstest.Keeping(t, disktest.New(), time.Second)
}

// eachCall visits every command with a call of it.
func eachCall(visit func(c *catalog.Command, call []string)) {
	for _, c := range catalog.New().Commands() {
		if c.Subs == nil || c.AcceptsArity(1) {
			visit(c, callWith(c, "held"))
		}
	}
}

// TestEveryCommandBesideAHeldKey: in EXEC with a command on a key, while another client calls for keys of the
// same shard without pause, every command is executed or refused, and no client is left waiting.
func TestEveryCommandBesideAHeldKey(t *testing.T) {
	eachCall(func(c *catalog.Command, call []string) {
		t.Run(c.FullName(), func(t *testing.T) {
			r := commandstest.New(keeping(t))
			s, other := r.Session(), r.Session()
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default: // enough keys for every shard
						for key := range 64 {
							commandstest.Say(t, other, resptest.Encode("CL.THROTTLE", "held"+string(rune('A'+key)), "1000000", "1000000", "1"))
						}
						commandstest.Say(t, other, resptest.Encode("CL.THROTTLE", "held", "1000000", "1000000", "1"))
					}
				}
			})
			pipeline := "MULTI\r\nCL.THROTTLE held 4 1 10\r\n" + resptest.Encode(call...) + "EXEC\r\n"
			got, _, status := commandstest.Converse(t, s, pipeline)
			if status == peer.NeedInput {
				// the key is free again
				got += commandstest.Say(t, s, "CL.THROTTLE held 1000000 1000000 1 0\r\n")
			}
			close(stop)
			wg.Wait()
			resptest.ParseAll(t, got)
			refused := strings.Contains(got, "-EXECABORT Transaction discarded because of: '"+c.FullName()+"' can not be executed in a transaction together")
			if refused != (c.Flags&catalog.FlagNotWithKeys != 0) {
				t.Errorf("got %q", got)
			}
		})
	})
}

// TestRefusedTransactionsDoNothing: a refused command prevents the whole transaction, and the next one is
// new.
func TestRefusedTransactionsDoNothing(t *testing.T) {
	for _, refused := range []string{"CONFIG SET slowlog-max-len 7", "MEMORY PURGE", "ACL LOAD", "SCRIPT FLUSH", "SCRIPT LOAD x"} {
		for _, beside := range []string{"CL.THROTTLE k 4 1 10", "GET k", "DBSIZE", "EVAL \"return 1\" 1 k"} {
			for _, order := range []string{beside + "\r\n" + refused + "\r\n", refused + "\r\n" + beside + "\r\n"} {
				r := commandstest.New()
				s, other := r.Session(), r.Session()
				commandstest.Say(t, s, "WATCH w\r\nMULTI\r\n"+order)
				name := strings.ToLower(strings.Join(strings.Fields(refused)[:2], "|"))
				want := "-EXECABORT Transaction discarded because of: '" + name + "' can not be executed in a transaction together with commands on keys; send it on its own\r\n"
				if got := commandstest.Say(t, s, "EXEC\r\n"); got != want {
					t.Errorf("%q: got %q, want %q", order, got, want)
				}
				if got := commandstest.Say(t, other, "EXISTS k\r\nCONFIG GET slowlog-max-len\r\n"); got != ":0\r\n*2\r\n$15\r\nslowlog-max-len\r\n$1\r\n0\r\n" {
					t.Errorf("%q: something was executed: %q", order, got)
				}
				commandstest.Say(t, other, "CL.THROTTLE w 4 1 10\r\n") // no longer watched
				if got := commandstest.Say(t, s, "EXEC\r\nMULTI\r\nPING\r\nEXEC\r\n"); got != "-ERR EXEC without MULTI\r\n+OK\r\n+QUEUED\r\n*1\r\n"+commandstest.Pong {
					t.Errorf("%q: afterwards %q", order, got)
				}
			}
		}
		alone := commandstest.Say(t, commandstest.New().Session(), "WATCH w\r\nMULTI\r\nPING\r\n"+refused+"\r\nEXEC\r\n")
		if strings.Contains(alone, "EXECABORT") || !strings.Contains(alone, "*2\r\n"+commandstest.Pong) {
			t.Errorf("%s without keys: got %q", refused, alone)
		}
	}
}

// quoted returns a call as Lua arguments.
func quoted(call []string) string {
	all := make([]string, len(call))
	for i, arg := range call {
		all[i] = "'" + strings.ReplaceAll(arg, "'", `\'`) + "'"
	}
	return strings.Join(all, ",")
}

// TestEveryCommandInAScript is executed or refused while the script holds a key, which is free again
// afterwards.
func TestEveryCommandInAScript(t *testing.T) {
	eachCall(func(c *catalog.Command, call []string) {
		s := commandstest.New(keeping(t)).Session()
		script := "redis.call('cl.throttle', KEYS[1], 4, 1, 10) return redis.pcall(" + quoted(call) + ")"
		got := commandstest.Say(t, s, resptest.Encode("EVAL", script, "1", "held")+"TTL held\r\n")
		all := resptest.ParseAll(t, got)
		notAllowed := c.Flags&(catalog.FlagNoScript|catalog.FlagWhole|catalog.FlagNotWithKeys) != 0 || c.Refusal != ""
		if notAllowed != (all[0].Kind == '-' && (strings.Contains(all[0].Text, "not allowed from script") ||
			strings.Contains(all[0].Text, "not allowed from a script") || c.Refusal != "")) {
			t.Errorf("%s: got %q", c.FullName(), got)
		}
	})
}

// TestEveryCommandBeforeAuth is refused, except logins. EXEC wraps the error in its own.
func TestEveryCommandBeforeAuth(t *testing.T) {
	free := []string{"auth", "hello", "quit", "reset"}
	r := commandstest.New(commandstest.WithPassword("secret"))
	eachCall(func(c *catalog.Command, call []string) {
		got, _, _ := commandstest.Converse(t, r.Session(), resptest.Encode(call...))
		if refused := strings.HasSuffix(got, "NOAUTH Authentication required.\r\n"); refused == slices.Contains(free, c.FullName()) {
			t.Errorf("%s: got %q", c.FullName(), got)
		}
	})
}

// TestEveryCommandWithoutRights is refused to a user without rights, at once, behind MULTI and in EXEC,
// except the commands for everybody.
func TestEveryCommandWithoutRights(t *testing.T) {
	eachCall(func(c *catalog.Command, call []string) {
		if c.Refusal != "" {
			return
		}
		r := commandstest.NewUserHarnessOf(t, keeping(t),
			"user default on nopass ~* &* +@all", "user none on >pw ~* -@all")
		s := r.Login("none")
		got, _, _ := commandstest.Converse(t, s, resptest.Encode(call...))
		if refused := strings.Contains(got, "no permissions to run"); refused == (c.Flags&catalog.FlagNoAuth != 0) {
			t.Errorf("%s: got %q", c.FullName(), got)
		}
	})
}

// TestRightsComeFirst: a user without the right to a command gets that error before any other refusal, as in
// Redis; only an unknown command, a wrong number of arguments, and commands not allowed in a transaction or a
// script come before it.
func TestRightsComeFirst(t *testing.T) {
	_, remote := onRemote()
	for state, config := range map[string]func(*commands.Config){
		"in memory": func(*commands.Config) {}, "without scripts": func(c *commands.Config) { c.Scripts = nil }, "over a remote store": remote,
		"loading": func(c *commands.Config) {
			c.Keeper = persist.New(persist.Config{
				Dir: disktest.New(), Store: c.Store.(persist.Store), Now: c.Now, Log: slog.New(slog.DiscardHandler),
			})
		},
	} {
		r := commandstest.NewUserHarnessOf(t, config, "user default on nopass ~* &* +@all",
			"user none on >pw ~* -@all +multi +exec +discard +eval")
		eachCall(func(c *catalog.Command, call []string) {
			if c.Flags&catalog.FlagNoAuth != 0 || c.Refusal != "" ||
				slices.Contains([]string{"multi", "exec", "discard", "eval"}, c.Name) {
				return
			}
			s := r.Login("none")
			check := func(how, got, want string) {
				if !strings.Contains(got, want) || strings.Count(got, "\r\n") != 1 {
					t.Errorf("%s, %s %s: got %q, want %q", c.FullName(), state, how, got, want)
				}
			}
			noperm := "-NOPERM this user has no permissions to run the '" + c.FullName() + "' command\r\n"
			check("at once", say(t, s, call...), noperm)
			if !c.AcceptsArity(100) {
				hundred := slices.Concat(call, slices.Repeat([]string{"1"}, 100-len(call)))
				check("with a hundred arguments", say(t, s, hundred...), "-ERR wrong number of arguments")
			}
			if state != "loading" || catalog.New().Lookup([]byte("multi")).Flags&catalog.FlagLoading != 0 {
				commandstest.Say(t, s, "MULTI\r\n")
				want := noperm
				if c.Flags&catalog.FlagNoMulti != 0 {
					want = "-ERR Command not allowed inside a transaction\r\n"
				}
				check("behind MULTI", say(t, s, call...), want)
				commandstest.Say(t, s, "DISCARD\r\n")
			}
			if state == "in memory" {
				want := "-ERR The user executing the script can't run this command or subcommand"
				if c.Flags&(catalog.FlagNoScript|catalog.FlagNotWithKeys) != 0 {
					want = "-ERR This Redis command is not allowed from script"
				}
				check("in a script", say(t, s, "EVAL", "return redis.call("+quoted(call)+")", "0"), want)
			}
		})
	}
}

func say(t *testing.T, s *commandstest.Client, call ...string) string {
	t.Helper()
	return commandstest.Say(t, s, resptest.Encode(call...))
}

// TestArityErrors follow the table.
func TestArityErrors(t *testing.T) {
	s := commandstest.New().Session()
	catalog.New().Each(func(r *catalog.Command) {
		least := len(strings.Split(r.FullName(), "|"))
		for words := least; words < least+6; words++ {
			if words == r.Arity || r.Arity < 0 && words >= -r.Arity || r.Subs != nil && words > 1 {
				continue
			}
			got := commandstest.Say(t, s, commandstest.CallOf(r, words)+resptest.Encode("PING"))
			code := "-ERR "
			if r.Name == "exec" {
				code = "-EXECABORT Transaction discarded because of: "
			}
			usage := ""
			if r.IsLimiters() {
				usage = "; usage: " + r.Usage()
			}
			if want := code + "wrong number of arguments for '" + r.FullName() + "' command" + usage + "\r\n" + commandstest.Pong; got != want {
				t.Errorf("%s with %d words: got %q, want %q", r.FullName(), words, got, want)
			}
		}
	})
}

// TestScriptsOff: every script command names the flag that enables it, and is in no list.
func TestScriptsOff(t *testing.T) {
	s := commandstest.New(func(c *commands.Config) { c.Scripts = nil }).Session()
	for _, in := range []string{"EVAL x 0", "EVALSHA x 0", "EVAL_RO x 0", "EVALSHA_RO x 0", "SCRIPT LOAD x", "SCRIPT EXISTS x", "SCRIPT FLUSH", "SCRIPT KILL", "SCRIPT HELP"} {
		commandstest.Expect(t, s, in+"\r\n", "-ERR scripts are off: start the server without --lua=off\r\n")
	}
	if got := commandstest.Say(t, s, "COMMAND INFO eval script script|load psubscribe nosuch\r\nCOMMAND DOCS eval script|load\r\nCOMMAND LIST FILTERBY PATTERN *script*\r\n"); got !=
		"*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n*0\r\n*0\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestNoForgedReplies: an error that quotes a client stays one line.
func TestNoForgedReplies(t *testing.T) {
	const evil = "x\r\n+OK\r\n$0\r\n\r\n\x00\x1b]0;\x07"
	for _, args := range [][]string{
		{evil}, {"nosuch", evil}, {evil, evil, evil}, {"CL.THROTTLE", "k", evil, evil, evil},
		{"CL.FIXEDWINDOW", "k", evil, "1"}, {"CL.SLIDINGWINDOW", "k", "1", "1", evil}, {"CL.BUCKET", evil, "k"}, {"CL.BUCKET", "TAKE", "k", evil},
		{"CL.BUCKET", "ADD", "k", "1", evil}, {"CL.PEEK", "k", "1", "1", evil}, {"CL.REFUND", "k", evil, "1", "1"}, {"CONFIG", evil},
		{"COMMAND", evil}, {"CLIENT", evil}, {"MODULE", evil}, {"CLIENT", "SETINFO", evil, "x"},
		{"CLIENT", "SETINFO", "LIB-NAME", evil}, {"CLIENT", "SETNAME", evil}, {"HELLO", evil}, {"HELLO", "3", evil},
		{"HELLO", "3", "SETNAME", evil}, {"HELLO", "3", "AUTH", evil, evil}, {"AUTH", evil}, {"AUTH", evil, evil},
		{"SELECT", evil}, {"FLUSHALL", evil}, {"FLUSHDB", evil}, {"COMMAND", "LIST", "FILTERBY", evil, "x"},
	} {
		s := commandstest.New(commandstest.WithPassword("secret")).Session()
		in := resptest.Encode(args...) + resptest.Encode("AUTH", "secret") + resptest.Encode(args...) + resptest.Encode("PING")
		got := commandstest.Say(t, s, in)
		lines := strings.Split(got, "\r\n")
		isError := func(line string) bool {
			return strings.HasPrefix(line, "-") && !strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' })
		}
		if len(lines) != 5 || !isError(lines[0]) || lines[1] != "+OK" || !isError(lines[2]) || lines[3] != "+PONG" || lines[4] != "" {
			t.Errorf("%q: got %q", args, got)
		}
	}
}

package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/reply"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/wire/peer"
)

// requests reads one call a line.
func requests(t *testing.T, text string) (all []decide.Request) {
	t.Helper()
	for line := range strings.Lines(text) {
		q, ok := commandstest.Request(strings.Fields(line)...)
		if !ok {
			t.Fatalf("no request is like %q", line)
		}
		all = append(all, q)
	}
	return all
}

// ask asks until all is decided.
func ask(s *commandstest.Client, a decide.Ask) {
	for {
		switch s.Ask(a) {
		case peer.Waiting:
			<-s.Conn.Woken
		case peer.More:
		default:
			return
		}
	}
}

// together has calls decided in one step and returns the decisions in words.
func together(t *testing.T, s *commandstest.Client, all bool, text string) string {
	t.Helper()
	asked := &decide.Together{All: requests(t, text), Each: !all}
	if ask(s, asked); asked.Err != nil {
		return "-" + asked.Err.Error()
	}
	return words(asked.All)
}

func words(decided []decide.Request) string {
	var all []string
	for _, q := range decided {
		r := &q.Result
		if q.Err != nil {
			all = append(all, "-"+q.Err.Error())
		} else {
			all = append(all, fmt.Sprint(r.Limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter))
		}
	}
	return strings.Join(all, "; ")
}

// onStores runs a test on each kind of store.
func onStores(t *testing.T, test func(t *testing.T, r *commandstest.Harness)) {
	for name, change := range map[string]func(*commands.Config){
		"memory": func(*commands.Config) {},
		"disk":   commandstest.Keeping(t, disktest.New(), 0),
		"remote": func(c *commands.Config) { c.Store = storetest.NewRemote(shard.New()) },
	} {
		t.Run(name, func(t *testing.T) {
			test(t, commandstest.New(func(c *commands.Config) {
				c.NamedLimits = namedlimit.New(namedlimit.Config{Log: c.Log})
				c.Now = func() int64 { return commandstest.T0 }
				change(c)
			}))
		})
	}
}

// define defines a limit as a client would.
func define(t *testing.T, r *commandstest.Harness, command string) {
	t.Helper()
	var args [][]byte
	for word := range strings.FieldsSeq(command) {
		args = append(args, []byte(word))
	}
	d, err := argument.Definition(args, funnel.Burst)
	if err == nil {
		err = r.Config.NamedLimits.Set(d)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTogether(t *testing.T) {
	onStores(t, func(t *testing.T, r *commandstest.Harness) {
		define(t, r, "CL.LIMIT SET l 4 1 10")
		s := r.Session()
		const both = "CL.CHECK l a 3\nCL.FIXEDWINDOW f 5 60 3\n"
		for _, tt := range []struct {
			all  bool
			text string
			want string
		}{
			{true, both, "false 5 2 -1 30000; false 5 2 -1 60000"},
			{true, "CL.CHECK l a 2\nCL.FIXEDWINDOW f 5 60 3", "false 5 2 -1 30000; true 5 2 60000 60000"},
			{false, "CL.CHECK l a 2\nCL.FIXEDWINDOW f 5 60 3", "false 5 0 -1 50000; true 5 2 60000 60000"},
			{true, "CL.THROTTLE k 0 1 60\nCL.THROTTLE k 0 1 60", "false 1 1 -1 0; true 1 0 -1 60000"},
			{true, "CL.CHECK l b\nCL.CHECK nosuch b", "-ERR no such limit 'nosuch'; define it by CL.LIMIT SET or in --limits-file"},
			{true, "CL.CHECK l b -1", "-Cell error: Store error: quantity must be at least 0 where several are decided in one step"},
			{true, "CL.CHECK l b 1\nCL.FIXEDWINDOW l:b 5 60", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
			{true, "CL.CHECK l b 5", "false 5 0 -1 50000"},
		} {
			if got := together(t, s, tt.all, tt.text); got != tt.want {
				t.Errorf("all %t: %s\ngot  %s\nwant %s", tt.all, tt.text, got, tt.want)
			}
		}
	})
}

// TestResults: a named limit's decision has the result of each of its rules.
func TestResults(t *testing.T) {
	onStores(t, func(t *testing.T, r *commandstest.Harness) {
		define(t, r, "CL.LIMIT SET l 1 2 1 9 10 60")
		define(t, r, "CL.LIMIT SET m FUNNEL 1 2 1 FIXEDWINDOW 10 60")
		s := r.Session()
		for range 2 {
			together(t, s, true, "CL.CHECK l k\nCL.CHECK m k")
		}
		for _, tt := range []struct{ name, want string }{
			{"l", "[{true 0 2 0 500 1000} {false 0 10 7 -1 18000}]"},
			{"m", "[{true 0 2 0 500 1000} {false 0 10 7 -1 60000}]"},
		} {
			asked := &decide.Together{All: requests(t, "CL.CHECK "+tt.name+" k")}
			ask(s, asked)
			if got := fmt.Sprint(asked.All[0].Named.Results()); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
	})
}

// TestOperation: an operation leaves its results with its owner, or its error, and is counted, watched and
// logged as the command that it is like.
func TestOperation(t *testing.T) {
	onStores(t, func(t *testing.T, r *commandstest.Harness) {
		s, monitor := r.Session(), r.Session()
		commandstest.Say(t, monitor, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 100\r\nMONITOR\r\n")
		ask(s, &decide.Requests{All: requests(t, "CL.THROTTLE k 15 30 60")})
		del := func(key string, do decide.Verb) *decide.Operation {
			o := &decide.Operation{Command: "del", Said: []string{"DEL", key}, Key: []byte(key), Do: do, Refusal: reply.ErrSyntax}
			ask(s, o)
			return o
		}
		if o := del("k", decide.Delete); o.Err != nil || !o.Deleted {
			t.Errorf("deleted %t: %v", o.Deleted, o.Err)
		}
		long := strings.Repeat("k", commandstest.MaxKeyBytes+1)
		if o := del(long, decide.Delete); o.Err == nil || !strings.HasPrefix(o.Err.Error(), "ERR key is longer") {
			t.Errorf("a long key: %v", o.Err)
		}
		if o := del("other", decide.Refuse); !errors.Is(o.Err, reply.ErrSyntax) {
			t.Errorf("one that fails: %v", o.Err)
		}
		if o := del("other", decide.Admit); o.Err != nil {
			t.Errorf("one that is not executed: %v", o.Err)
		}
		lines, _, _ := commandstest.Feed(t, monitor, "")
		if !strings.Contains(lines, `"DEL" "k"`) || strings.Count(lines, `"DEL"`) != 2 {
			t.Errorf("MONITOR has %s", lines)
		}
		told, _, _ := commandstest.Converse(t, r.Session(), "INFO commandstats\r\nSLOWLOG GET 10\r\n")
		for _, want := range []string{"cmdstat_del:calls=2,", "rejected_calls=1,failed_calls=1", "$3\r\nDEL\r\n$1\r\nk\r\n"} {
			if !strings.Contains(told, want) {
				t.Errorf("no %s: %s", want, told)
			}
		}
	})
}

// TestTogetherIsSeen by MONITOR call by call, and by the counters once.
func TestTogetherIsSeen(t *testing.T) {
	r := commandstest.New()
	monitor, s := r.Session(), r.SessionOf(peer.Peer{Addr: "192.0.2.1:5000", Door: peer.HTTP})
	commandstest.Say(t, monitor, "MONITOR\r\n")
	together(t, s, true, "CL.FIXEDWINDOW f 5 60\nCL.THROTTLE k 15 30 60")
	lines, _, _ := commandstest.Feed(t, monitor, "")
	for _, want := range []string{`[0 http:192.0.2.1:5000] "CL.FIXEDWINDOW" "f"`, `[0 http:192.0.2.1:5000] "CL.THROTTLE" "k"`} {
		if !strings.Contains(lines, want) {
			t.Errorf("MONITOR has no %s: %s", want, lines)
		}
	}
	told, _, _ := commandstest.Converse(t, r.Session(), "INFO commandstats\r\nCLIENT LIST\r\n")
	for _, want := range []string{"cmdstat_cl.mcheck:calls=1", "name=http"} {
		if !strings.Contains(told, want) {
			t.Errorf("no %s: %s", want, told)
		}
	}
}

// TestBecome: each call has the rights of its user, and without one those of the default user.
func TestBecome(t *testing.T) {
	r := commandstest.New(func(c *commands.Config) { c.Users.SetDefaultPassword("pw") })
	if _, err := r.Config.Users.Load("", "user default on >pw ~* +@all\nuser app on nopass ~mine* +cl.throttle"); err != nil {
		t.Fatal(err)
	}
	s := r.Session()
	const mine, other = "CL.THROTTLE mine 15 30 60", "CL.THROTTLE k 15 30 60"
	ask := func(call string) string {
		asked := &decide.Requests{All: requests(t, call)}
		ask(s, asked)
		return strings.SplitN(words(asked.All), " ", 2)[0]
	}
	got := []string{ask(other)}
	s.Become(r.Config.Users.Lookup("app"))
	got = append(got, ask(mine), ask(other))
	s.Become(nil)
	got = append(got, ask(mine))
	r.Config.Users.SetDefaultPassword("")
	s.Become(nil)
	got = append(got, ask(other))
	if want := "[-NOAUTH false -NOPERM -NOAUTH false]"; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTogetherIsRefused: an error is that of all.
func TestTogetherIsRefused(t *testing.T) {
	on := storetest.NewRemote(shard.New())
	on.Fail(store.Failure{Line: storetest.LineDown})
	r := commandstest.New(func(c *commands.Config) { c.Store = on })
	if got := together(t, r.Session(), true, "CL.THROTTLE a 15 30 60\nCL.THROTTLE b 15 30 60"); !strings.HasPrefix(got, "-STOREDOWN") || strings.Contains(got, ";") {
		t.Errorf("got %s", got)
	}
}

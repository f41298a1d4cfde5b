package session_test

import (
	"fmt"
	"strings"
	"testing"

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

// calls reads one call a line.
func calls(text string) (all []peer.Call) {
	for line := range strings.Lines(text) {
		var call peer.Call
		for _, word := range strings.Fields(line) {
			call = append(call, []byte(word))
		}
		all = append(all, call)
	}
	return all
}

// together decides calls in one step and returns the answers in words.
func together(t *testing.T, s *commandstest.Client, all bool, text string) string {
	t.Helper()
	answers, status := s.SubmitTogether(calls(text), all, nil)
	for status == peer.Waiting || status == peer.More {
		if status == peer.Waiting {
			<-s.Conn.Woken
		}
		_, answers, status = s.Submit(nil, answers)
	}
	return words(answers)
}

func words(answers []reply.Answer) string {
	var all []string
	for _, a := range answers {
		r := &a.Result
		switch {
		case a.Error != "":
			all = append(all, "-"+a.Error)
		case a.Reply != nil:
			all = append(all, fmt.Sprintf("%q", a.Reply))
		default:
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
	d, err := argument.Definition(calls(command)[0], funnel.Burst)
	if err == nil {
		err = r.Config.NamedLimits.Set(d)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSubmitTogether(t *testing.T) {
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
			{true, "CL.THROTTLE k 0 1 60\nCL.THROTTLE k 0 1 60", "false 1 1 -1 0; true 1 1 -1 0"},
			{true, "CL.CHECK l b\nCL.CHECK nosuch b", "-ERR no such limit 'nosuch'; define it by CL.LIMIT SET or in --limits-file"},
			{true, "CL.CHECK l b\nDEL b", "-ERR this command is only for clients that speak RESP"},
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

// TestSubmitResults: a named limit's answer has the result of each of its rules.
func TestSubmitResults(t *testing.T) {
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
			answers, _ := s.SubmitTogether(calls("CL.CHECK "+tt.name+" k"), true, nil)
			for len(answers) == 0 {
				<-s.Conn.Woken
				_, answers, _ = s.Submit(nil, answers)
			}
			if got := fmt.Sprint(answers[0].By.Results()); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
	})
}

// TestSubmitReplies: other commands are answered by their replies in RESP3, in order with the rest.
func TestSubmitReplies(t *testing.T) {
	onStores(t, func(t *testing.T, r *commandstest.Harness) {
		d := door{s: r.Session()}
		got := d.submit(t, [][]string{
			{"CL.RESERVE", "k", "15", "30", "60", "2", "60000"}, {"CL.THROTTLE", "k", "15", "30", "60"}, {"DEL", "k", "other"}, {"EXISTS", "k"}, {"CL.THROTTLE", "k", "15", "30", "60"},
		})
		if len(got) != 5 || !strings.HasPrefix(got[0], "*6\r\n:0\r\n:16\r\n:14\r\n:-1\r\n:4000\r\n") || got[1] != "[0 16 13 -1 6]" ||
			got[2] != ":1\r\n" || got[3] != ":0\r\n" || got[4] != "[0 16 15 -1 2]" {
			t.Errorf("got %q", got)
		}
	})
}

// TestSubmitTogetherIsSeen by MONITOR call by call, and by the counters once.
func TestSubmitTogetherIsSeen(t *testing.T) {
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
		_, answers, _ := s.Submit(calls(call), nil)
		return strings.SplitN(words(answers), " ", 2)[0]
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

// TestSubmitTogetherIsRefused: an error is that of all.
func TestSubmitTogetherIsRefused(t *testing.T) {
	on := storetest.NewRemote(shard.New())
	on.Fail(store.Failure{Line: storetest.LineDown})
	r := commandstest.New(func(c *commands.Config) { c.Store = on })
	if got := together(t, r.Session(), true, "CL.THROTTLE a 15 30 60\nCL.THROTTLE b 15 30 60"); !strings.HasPrefix(got, "-STOREDOWN") || strings.Contains(got, ";") {
		t.Errorf("got %s", got)
	}
}

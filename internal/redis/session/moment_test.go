package session_test

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/session"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
)

// changing has limits whose definitions change while a call reads the clock for an override that ends.
type changing struct {
	*commandstest.Harness
	named  *namedlimit.Registry
	max    int64  // max_count of the limits in the file
	nowNs  int64  // by which overrides end
	change func() // at the next reading of the clock; nil for none
}

const endsNs = 1000 // when the override of b's key "ends" ends

func newChanging(t *testing.T, on store.Store) *changing {
	t.Helper()
	r := &changing{max: 5, nowNs: 1}
	r.named = namedlimit.New(namedlimit.Config{
		Path: "limits.yaml",
		Read: func() (d namedlimit.Definitions, whole bool, err error) {
			d.Limits = map[string]namedlimit.Definition{}
			for _, name := range []string{"a", "b"} {
				d.Limits[name] = namedlimit.Definition{Name: name, Near: 1, Policy: windowOf(r.max)}
			}
			return d, true, nil
		},
		Now: func() int64 {
			nowNs, change := r.nowNs, r.change
			if r.change = nil; change != nil {
				change()
			}
			return nowNs
		},
		Log: slog.New(slog.DiscardHandler),
	})
	r.reload(t)
	r.override(t, namedlimit.KeyOverride{Limit: "a", Key: "clock", Policy: windowOf(8), UntilNs: math.MaxInt64})
	r.override(t, namedlimit.KeyOverride{Limit: "b", Key: "ends", Policy: windowOf(7), UntilNs: endsNs})
	r.Harness = commandstest.New(withStore(on), func(c *commands.Config) { c.NamedLimits = r.named })
	return r
}

func windowOf(maxCount int64) namedlimit.Policy {
	return namedlimit.Policy{Rules: []namedlimit.Rule{{Algorithm: namedlimit.FixedWindow, Capacity: maxCount, PeriodSec: 3600}}}
}

func (r *changing) reload(t *testing.T) {
	if err := r.named.Reload(); err != nil {
		t.Error(err)
	}
}

func (r *changing) override(t *testing.T, o namedlimit.KeyOverride) {
	if _, err := r.named.Override(o); err != nil {
		t.Error(err)
	}
}

// limitsIn returns the second of each five integers.
func limitsIn(r resptest.Reply) (limits []int64) {
	if len(r.Elements) == 5 && r.Elements[1].Kind == ':' {
		return []int64{r.Elements[1].Number}
	}
	for _, e := range r.Elements {
		limits = append(limits, limitsIn(e)...)
	}
	return limits
}

// TestCallsAreOfOneMoment: the file is read again, an override given, or one ends, between two keys of a
// call, of EXEC or of a script.
func TestCallsAreOfOneMoment(t *testing.T) {
	changes := map[string]func(t *testing.T, r *changing){
		"reload": func(t *testing.T, r *changing) { r.max = 6; r.reload(t) },
		"override": func(t *testing.T, r *changing) {
			r.override(t, namedlimit.KeyOverride{Limit: "b", Key: "x", Policy: windowOf(9)})
		},
		"end": func(_ *testing.T, r *changing) { r.nowNs = endsNs },
	}
	keys := []string{"a", "x", "a", "clock", "b", "x", "b", "ends"}
	check := func(i int) []string { return []string{"CL.CHECK", keys[2*i], keys[2*i+1]} }
	exec := func(calls ...[]string) string {
		all := resptest.Encode("MULTI")
		for _, call := range calls {
			all += resptest.Encode(call...)
		}
		return all + resptest.Encode("EXEC")
	}
	script := func(from, to int) []string {
		lua, of := "local all = {}", []string{}
		for i := from; i < to; i++ {
			lua += fmt.Sprintf(" all[#all + 1] = redis.call('cl.check', '%s', '%s')", keys[2*i], keys[2*i+1])
			of = append(of, keys[2*i]+":"+keys[2*i+1])
		}
		return append([]string{"EVAL", lua + " return all", fmt.Sprint(len(of))}, of...)
	}
	spoken := map[string]string{
		"CL.MCHECK":           resptest.Encode(append([]string{"CL.MCHECK", "4"}, keys...)...),
		"CL.MCHECK EACH":      resptest.Encode(append(append([]string{"CL.MCHECK", "4"}, keys...), "EACH")...),
		"EXEC":                exec(check(0), check(1), check(2), check(3)),
		"EXEC with EXPLAIN":   exec(check(0), check(1), []string{"CL.LIMIT", "EXPLAIN", "b", "x"}, check(3)),
		"EXEC with CL.MCHECK": exec(check(0), check(1), append([]string{"CL.MCHECK", "2"}, keys[4:]...)),
		"a script":            resptest.Encode(script(0, 4)...),
		"a script in EXEC":    exec(check(0), script(1, 3), check(3)),
	}
	asked := func(request func(i int) decide.Request) (all []decide.Request) {
		for i := range len(keys) / 2 {
			all = append(all, request(i))
		}
		return all
	}
	valued := map[string]func(r *changing, d door) []decide.Request{
		"several in one step, by value": func(_ *changing, d door) []decide.Request {
			a := &decide.Together{All: asked(func(i int) decide.Request { q, _ := commandstest.Request(check(i)...); return q })}
			for d.goesOn(d.s.Ask(a), 0) {
				continue
			}
			return a.All
		},
		"several in order, by value": func(_ *changing, d door) []decide.Request {
			a := &decide.Requests{All: asked(func(i int) decide.Request { q, _ := commandstest.Request(check(i)...); return q })}
			own, _ := commandstest.Request("CL.FIXEDWINDOW", "own", "3", "60") // of another command, so that the batch is decided before
			a.All = slices.Insert(a.All, 2, own)
			for d.goesOn(d.s.Ask(a), 0) {
				continue
			}
			return slices.Delete(a.All, 2, 3)
		},
	}
	want := []int64{5, 8, 5, 7}
	for name, change := range changes {
		for _, make := range []func() store.Store{func() store.Store { return shard.New() }, func() store.Store { return session.NewFullLaterStore() }} {
			ready := func() *changing {
				r := newChanging(t, make())
				r.change = func() { change(t, r) }
				return r
			}
			for way, in := range spoken {
				r := ready()
				if strings.Contains(way, "script") && !store.AbilitiesOf(r.Config.Store).AtOnce {
					continue // it decides scripts of one call only
				}
				all := resptest.ParseAll(t, commandstest.Say(t, r.Session(), in))
				if got := limitsIn(all[len(all)-1]); !slices.Equal(got, want) || r.change != nil {
					t.Errorf("%s, %s, %T: limits %v, want %v; %+v", name, way, r.Config.Store, got, want, all)
				}
			}
			for way, ask := range valued {
				r := ready()
				var got []int64
				for _, q := range ask(r, door{s: r.Session()}) {
					got = append(got, q.Result.Limit)
				}
				if !slices.Equal(got, want) || r.change != nil {
					t.Errorf("%s, %s, %T: limits %v, want %v", name, way, r.Config.Store, got, want)
				}
			}
			// calls that wait together are each by themselves
			r := ready()
			pipelined := ""
			for i := range len(keys) / 2 {
				pipelined += resptest.Encode(check(i)...)
			}
			var got []int64
			for _, reply := range resptest.ParseAll(t, commandstest.Say(t, r.Session(), pipelined)) {
				got = append(got, limitsIn(reply)...)
			}
			if after := map[string][]int64{"reload": {5, 8, 6, 7}, "override": {5, 8, 9, 7}, "end": {5, 8, 5, 5}}[name]; !slices.Equal(got, after) {
				t.Errorf("%s, a pipeline, %T: limits %v, want %v", name, r.Config.Store, got, after)
			}
		}
	}
}

// TestExecSeesItsOwnChanges of limits.
func TestExecSeesItsOwnChanges(t *testing.T) {
	s := commandstest.New().Session()
	in := "MULTI\r\nCL.LIMIT SET l 4 1 60\r\nCL.LIMIT LIST\r\nCL.LIMIT DEL l\r\nCL.LIMIT LIST\r\nEXEC\r\n"
	commandstest.Expect(t, s, in, "+OK\r\n"+strings.Repeat("+QUEUED\r\n", 4)+"*4\r\n+OK\r\n*1\r\n$1\r\nl\r\n:1\r\n*0\r\n")
}

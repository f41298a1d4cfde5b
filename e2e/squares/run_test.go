package squares

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/resptest"
)

// system is a server under test, with its doors.
type system interface {
	now() int64
	pass(ns int64) // lets time pass, if the test can
	write(t *testing.T, text string)
	admins() []*client   // the first one's server makes changes; each has a file
	counters() []*client // whose servers count calls
	opened() []way
	commands() bool  // whether CL.LIMIT changes anything
	setsClock() bool // else time passes by itself
	slackNs() int64  // what times may differ by
}

func (h *house) now() int64          { return h.Clock.Now() }
func (h *house) pass(ns int64)       { h.Clock.Advance(ns) }
func (h *house) admins() []*client   { return []*client{h.admin} }
func (h *house) counters() []*client { return h.admins() }
func (h *house) opened() []way       { return h.doors }
func (h *house) commands() bool      { return h.local }
func (h *house) setsClock() bool     { return true }
func (h *house) slackNs() int64      { return 0 }

// run is a sequence of random calls of a system, and the model of it.
type run struct {
	t *testing.T
	artist
	*model
	system
	told  []string // what was done
	table *table
	also  []string // what is the same for all calls
	kinds []string // of questions

	before func()     // each question, if the server may forget keys
	known  []question // calls that have made holds
}

// newRun draws a first file.
func newRun(t *testing.T, a artist, open func(r *run, text string) system, table *table, also ...string) *run {
	t.Helper()
	r := &run{t: t, kinds: allKinds, artist: a, model: newModel(), table: table, also: also}
	r.byFile, r.plans = r.newFile(nil, nil)
	text := yaml(r.byFile, r.plans)
	r.note("file:\n%s", text)
	r.system = open(r, text)
	return r
}

func (r *run) note(format string, of ...any) { r.told = append(r.told, fmt.Sprintf(format, of...)) }

func (r *run) fail(format string, of ...any) {
	r.t.Helper()
	r.t.Fatalf("after\n%s\n%s", strings.Join(r.told, "\n"), fmt.Sprintf(format, of...))
}

// step does something.
func (r *run) step() {
	switch n := r.IntN(100); {
	case n < 64:
		r.asks()
	case n < 70:
		if h, is := r.system.(*house); is && r.share == 0 {
			r.envoys(h.envoy)
		}
	case n < 82:
		ns := one(r.Rand, []int64{1, 1_000_000, 300_000_000, secNs, 7 * secNs, 31 * secNs, 400 * secNs, 3600 * secNs, 5 * 86_400 * secNs})
		ns = 1 + r.Int64N(ns)
		r.note("%d ns pass", ns)
		r.pass(ns)
	case n < 85:
		r.reload()
	case n < 88 && r.commands():
		r.set()
	case n < 89 && r.commands():
		r.delete()
	case n < 97 && r.commands():
		r.overrides()
	case r.share > 0 || r.before != nil: // no other command is executed, or knows what is forgotten
		r.asks()
	case n < 99:
		r.reset()
	default:
		r.expiry()
	}
}

// asks asks some questions by a door.
func (r *run) asks() {
	d := one(r.Rand, r.opened())
	if d.only != "" && !slices.Contains(r.kinds, d.only) {
		return
	}
	var all []question
	for n := 1 + r.IntN(d.most); len(all) < n; {
		if q := r.drawn(); d.accepts(&q) {
			all = append(all, q)
		}
	}
	if r.before != nil {
		all = all[:1]
		r.before()
	}
	r.compares(d, all)
}

// everything looks at each key of each limit.
func (r *run) everything() (all []question) {
	for _, name := range names {
		for _, key := range keys {
			look := []call{{pair: pair{name, key}}}
			all = append(all, question{kind: "check", calls: look}, question{kind: "explain", calls: look})
		}
	}
	return all
}

// compares asks by a door and compares its answers with the model's.
func (r *run) compares(d way, all []question) {
	r.t.Helper()
	for i := range all {
		r.table.count(r.features(&all[i]), d.name, r.also)
	}
	var wanted []answer
	nowNs := r.now()
	r.tidy(nowNs)
	for i := range all {
		wanted = append(wanted, r.answer(all[i], nowNs, d.unit))
	}
	got := d.ask(r.t, all)
	for i := range all {
		r.note("%s: %s -> %+v", d.name, strings.Join(all[i].command(), " "), wanted[i])
		r.holdKnown(&all[i], &got[i])
		if !r.same(d.unit, &got[i], &wanted[i]) {
			r.fail("%s by %s: got %+v, want %+v\nstates before: %s", all[i].command(), d.name, got[i], wanted[i], r.states(&all[i]))
		}
	}
}

func (r *run) same(u unit, got, want *answer) bool {
	if r.setsClock() {
		return got.equals(want)
	}
	return got.near(want, u.of(r.slackNs()))
}

func (d *way) accepts(q *question) bool {
	mixed := slices.ContainsFunc(q.calls, func(c call) bool { return c.units != q.calls[0].units })
	switch {
	case q.hold != nil:
		return d.holds
	case mixed && d.name != "HTTP POST": // commands have one number for all
		return false
	case d.may == nil:
		return q.kind != "page"
	}
	return d.may(q)
}

func (r *run) states(q *question) (text string) {
	for _, c := range q.calls {
		for _, id := range slices.Sorted(maps.Keys(r.keys[c.pair])) {
			text += fmt.Sprintf("\n%v %s: %+v", c.pair, id, *r.keys[c.pair][id])
		}
	}
	return text + fmt.Sprintf("\nnow %d", r.now())
}

// expect sends a command and compares the beginning of the reply.
func (r *run) expect(want string, words ...string) {
	r.t.Helper()
	r.expectOf(r.admins()[0], want, words...)
}

func (r *run) expectOf(c *client, want string, words ...string) {
	r.t.Helper()
	r.note("%s -> %s", strings.Join(words, " "), want)
	if got := short(c.one(words...)); !strings.HasPrefix(got, want) {
		r.fail("%s: got %s, want %s", strings.Join(words, " "), got, want)
	}
}

func short(reply resptest.Reply) string {
	switch reply.Kind {
	case ':':
		return strconv.FormatInt(reply.Number, 10)
	case '-':
		return "-" + reply.Text
	default:
		return reply.Text
	}
}

func (r *run) reload() {
	r.byFile, r.plans = r.newFile(r.byFile, r.plans)
	for name := range r.byFile {
		delete(r.byCommand, name)
	}
	r.forget()
	r.file++
	text := yaml(r.byFile, r.plans)
	r.note("%s", text)
	r.write(r.t, text)
	for _, c := range r.admins() {
		r.expectOf(c, "OK", "CL.LIMIT", "RELOAD")
	}
}

func (r *run) set() {
	name := one(r.Rand, names)
	rules := r.rules(false)
	if l := r.byCommand[name]; l != nil && len(l.rules) > 0 && r.often(70) {
		rules = r.changed(l.rules)
	}
	l := &limit{policy: policy{rules: rules}, shadow: r.often(20), near: 0.8}
	words := append([]string{"CL.LIMIT", "SET", name}, l.words()...)
	if l.shadow {
		words = append(words, "SHADOW")
	}
	if r.byFile[name] != nil {
		r.expect("-", words...)
		return
	}
	r.expect("OK", words...)
	r.byCommand[name] = l
	r.forget()
}

func (r *run) delete() {
	name := one(r.Rand, names)
	switch {
	case r.byFile[name] != nil:
		r.expect("-", "CL.LIMIT", "DEL", name)
	case r.byCommand[name] == nil:
		r.expect("0", "CL.LIMIT", "DEL", name)
	default:
		r.expect("1", "CL.LIMIT", "DEL", name)
		delete(r.byCommand, name)
		r.forget()
	}
}

func (r *run) overrides() {
	p := pair{one(r.Rand, names), one(r.Rand, keys)}
	words := []string{"CL.LIMIT", "OVERRIDE", p.name, p.key}
	before, found := r.model.overrides[p]
	if found = found && (before.untilNs == 0 || before.untilNs > r.now()); r.often(35) {
		r.changes(p.name, map[bool]string{false: "0", true: "1"}[found], append(words, "DEL"), []string{"action", "end-override", "limit", p.name, "key", p.key})
		delete(r.model.overrides, p)
		return
	}
	o := keyOverride{policy: r.policy(false)}
	if l := r.limit(p.name); l != nil && len(l.rules) > 0 && r.often(60) {
		o.policy = policy{rules: r.unnamed(r.changed(l.rules))}
	}
	if found && len(before.rules) > 0 && r.often(30) {
		o.policy = before.policy
	}
	words = append(words, o.words()...)
	fields := []string{"action", "override", "limit", p.name, "key", p.key, "policy", strings.Join(o.words(), " ")}
	if r.often(50) {
		sec := 1 + r.Int64N(4000)
		if !r.setsClock() {
			sec += 1_000_000
		}
		o.untilNs = r.now() + sec*secNs
		words, fields = append(words, "EX", strconv.FormatInt(sec, 10)), append(fields, "seconds", strconv.FormatInt(sec, 10))
	}
	_, known := r.plans[o.plan]
	if r.limit(p.name) == nil || o.plan != "" && !known {
		r.changes(p.name, "-", words, fields)
		return
	}
	r.changes(p.name, "OK", words, fields)
	r.model.overrides[p] = o
}

// unnamed returns rules as a command has them.
func (r *run) unnamed(rules []rule) (all []rule) {
	for _, of := range rules {
		of.name = ""
		if !slices.ContainsFunc(all, func(other rule) bool { return other.id() == of.id() }) {
			all = append(all, of)
		}
	}
	return all
}

func (r *run) reset() {
	p := pair{one(r.Rand, names), one(r.Rand, keys)}
	want := "0"
	if r.untilNs(p, r.now()) > 0 {
		want = "1"
	}
	if h, is := r.system.(*house); is && h.spender() != nil { // else what nobody has seen return stays spent
		h.notices(r.t)
		r.tidy(r.now())
	}
	r.expect(want, "DEL", p.name+":"+p.key)
	r.loses(p)
}

// expiry compares when a key expires: it is the last of its entries.
func (r *run) expiry() {
	p := pair{one(r.Rand, names), one(r.Rand, keys)}
	want, nowNs := int64(-2), r.now()
	if untilNs := r.untilNs(p, nowNs); untilNs > 0 {
		want = milliseconds.of(untilNs - nowNs)
	}
	if got := r.admins()[0].one("PTTL", p.name+":"+p.key).Number; max(got, want)-min(got, want) > 1+milliseconds.of(r.slackNs()) {
		r.fail("PTTL %s:%s: got %d, want %d", p.name, p.key, got, want)
	}
}

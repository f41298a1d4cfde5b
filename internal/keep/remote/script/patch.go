package script

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// Only a script knows when it writes a state: not before the time at which that was decided, and not after
// another at which the same has been decided for comparison. A number that differs between the two states
// depends on the time of writing, in one of the forms of package limiter, so the two values tell what it is
// at any time between. The latest of times a and t + b is max(a, t + b), also after it was moved by a charge
// or a refund and bounded by t again; so it is max(first value, t + second value - second time).

// Patch is the change of a number of a state by the time of writing: that since the decision, less fromNs,
// but at least 0 and at most mostNs.
type Patch struct {
	At             int // of its eight bytes in the payload, or limiter.ExpiresAt
	FromNs, MostNs int64
}

// Patches are all patches of a state by position.
type Patches []Patch

// Change is a key's next state, for a swap.
type Change struct {
	To      limiter.State
	Patches Patches
	LastNs  int64 // it must not be written later
}

// ChangeOf returns the change from a state to the next one, which steps made of it at nowNs, for a swap that
// is executed until mostNs, or as long as the steps have the same effect. again takes the steps on a copy at
// a later time, and reports whether each has changed it. A denial that begins a block has it for effect.
func ChangeOf(before, to limiter.State, nowNs, mostNs int64, again func(s *limiter.State, nowNs int64) bool) Change {
	endNs := min(limiter.EndNs(&before, nowNs), limiter.EndNs(&to, nowNs))
	c := Change{To: to, LastNs: wholeUs(nowNs, min(mostNs, endNs-1))}
	for c.LastNs > nowNs {
		later := limiter.Shifted(before, 0)
		if again(&later, c.LastNs) && limiter.SameBlocksAndHolds(&to, &later) {
			c.Patches = patchesOf(&c.To, &later, nowNs, c.LastNs, limiter.Rebased(&before, &to, nowNs))
			break
		}
		c.LastNs = wholeUs(nowNs, nowNs+(c.LastNs-nowNs)/2)
	}
	return c
}

// wholeUs returns a time that is whole microseconds after nowNs, as the servers' clocks show: what is rounded
// to one moves as much as the clock.
func wholeUs(nowNs, laterNs int64) int64 { return nowNs + max(0, laterNs-nowNs)/1000*1000 }

// patchesOf returns the patches of a state that was made at nowNs, for writing until laterNs, where the same
// steps make the later one. In s it replaces numbers that are to be those of the later state. A rebased
// funnel does not leak until it is written: that denies a little longer, once.
func patchesOf(s, later *limiter.State, nowNs, laterNs int64, rebased []limiter.Part) (all Patches) {
	if s.ExpiresNs <= nowNs {
		return nil
	}
	will := numbers{of: later}
	if later.Kind != s.Kind || later.ExpiresNs <= laterNs {
		will.of = &limiter.State{Kind: s.Kind}
	}
	p := patching{s: s, apartNs: laterNs - nowNs, lastNs: math.MinInt64}
	var expiry limiter.Form
	limiter.EachClocked(s, func(part limiter.Part, at int, form limiter.Form) {
		if at == limiter.ExpiresAt {
			expiry = form
			return
		}
		ns := numberAt(s, at)
		thenNs := will.find(part, ns)
		if slices.Contains(rebased, part) {
			thenNs = ns + p.apartNs
		}
		p.add(at, form, ns, thenNs)
	})
	if expiry != limiter.LatestOfAll {
		p.lastNs = max(s.ExpiresNs, will.of.ExpiresNs)
	}
	p.add(limiter.ExpiresAt, expiry, s.ExpiresNs, p.lastNs)
	slices.SortFunc(p.all, func(a, b Patch) int { return cmp.Compare(a.At, b.At) })
	return p.all
}

// patching is the patches of a state, for writing until apartNs after the decision.
type patching struct {
	s       *limiter.State
	apartNs int64
	lastNs  int64 // the latest number then
	all     Patches
}

// add adds a number, and what it is at the later time.
func (p *patching) add(at int, form limiter.Form, ns, thenNs int64) {
	moreNs := thenNs - ns
	switch {
	case form == limiter.AsLater:
		setNumber(p.s, at, thenNs)
		return
	case moreNs <= 0 || moreNs > p.apartNs: // the same at all times, or expired in the later state
		moreNs = 0
	case form == limiter.Earliest:
		p.all = append(p.all, Patch{at, 0, moreNs})
	default:
		p.all = append(p.all, Patch{at, p.apartNs - moreNs, moreNs})
	}
	p.lastNs = max(p.lastNs, ns+moreNs)
}

type numbers struct {
	of   *limiter.State
	all  []number // once one was asked for
	next int
}

// numberBytes are about as many of a payload as have one number.
const numberBytes = 16

type number struct {
	part limiter.Part
	ns   int64
}

// find returns a number, most likely the one last found or one behind it, and otherNs if there is none.
func (n *numbers) find(part limiter.Part, otherNs int64) (ns int64) {
	if n.all == nil {
		n.all = make([]number, 0, 1+len(n.of.Payload)/numberBytes)
		limiter.EachClocked(n.of, func(part limiter.Part, at int, _ limiter.Form) {
			if at != limiter.ExpiresAt {
				n.all = append(n.all, number{part, numberAt(n.of, at)})
			}
		})
	}
	is := func(n number) bool { return n.part == part }
	if i := slices.IndexFunc(n.all[n.next:], is); i >= 0 {
		n.next += i
	} else if i = slices.IndexFunc(n.all, is); i >= 0 {
		n.next = i
	} else {
		return otherNs
	}
	return n.all[n.next].ns
}

func numberAt(s *limiter.State, at int) int64 {
	if at == limiter.ExpiresAt {
		return s.ExpiresNs
	}
	return int64(binary.LittleEndian.Uint64(s.Payload[at:]))
}

func setNumber(s *limiter.State, at int, n int64) {
	if at == limiter.ExpiresAt {
		s.ExpiresNs = n
		return
	}
	binary.LittleEndian.PutUint64(s.Payload[at:], uint64(n))
}

// Apply changes a state, and its payload in place, to what the script writes sinceNs after the decision.
func (all Patches) Apply(s *limiter.State, sinceNs int64) {
	for _, p := range all {
		setNumber(s, p.At, numberAt(s, p.At)+max(0, min(sinceNs-p.FromNs, p.MostNs)))
	}
}

// arg encodes the patches of a value whose payload begins at payloadAt.
func (all Patches) arg(payloadAt int) string {
	var b []byte
	for _, p := range all {
		at := payloadAt + p.At
		if p.At == limiter.ExpiresAt {
			at = expiresAt
		}
		for _, n := range [...]int64{int64(at), p.FromNs, p.MostNs} {
			b = append(strconv.AppendInt(b, n, 10), ' ')
		}
	}
	return string(b)
}

// Swapping is a call of Swap under construction.
type Swapping struct {
	Call      servers.Call
	decidedNs int64
	lastNs    int64 // of all changes
	moreMs    uint64
	bytes     int // of values
}

// lastArg is the index of the argument for lastNs.
const lastArg = 4

// NewSwap returns a swap without keys, decided at a time: the servers', or the caller's. With values it
// returns the values of keys that differ.
func (s *Scripts) NewSwap(decidedNs int64, keys int, values bool) *Swapping {
	w := &Swapping{decidedNs: decidedNs, lastNs: limiter.NeverNs, Call: servers.Call{
		Script: s.Swap, Keys: make([]string, 0, keys), Args: make([]any, 0, lastArg+1+4*keys),
	}}
	if s.callersTime {
		w.moreMs = hourMs
	}
	first := "1"
	if values {
		first = ""
	}
	if s.callersTime {
		w.Call.Args = append(w.Call.Args, strconv.FormatInt(decidedNs, 10), first, "", "", "")
	} else {
		w.Call.Args = append(w.Call.Args, "", first, decidedNs/nsPerSec, decidedNs%nsPerSec, "")
	}
	return w
}

// Keep adds a key with the value that it must have, which stays.
func (w *Swapping) Keep(name string, f *Found) { w.add(name, f, "", "", "") }

// Change adds a key with the value that it must have, and its change.
func (w *Swapping) Change(name string, f *Found, c *Change) {
	if c.To.ExpiresNs <= w.decidedNs {
		w.add(name, f, "-", "", "")
	} else {
		px, value := pxOf(&c.To, w.decidedNs, w.moreMs), ValueOf(&c.To)
		w.add(name, f, strconv.FormatUint(px, 10), value, c.Patches.arg(len(value)-len(c.To.Payload)))
	}
	if w.lastNs = min(w.lastNs, c.LastNs); w.moreMs == 0 { // else it is the time of writing
		w.Call.Args[lastArg] = funnel.Since(w.decidedNs, w.lastNs)
	}
}

func (w *Swapping) add(name string, f *Found, px, value, patches string) {
	expected := "-"
	switch {
	case f.Value != "":
		expected = "=" + f.Value // foreign or not
	case f.Err != nil:
		expected = "?"
	}
	w.Call.Keys = append(w.Call.Keys, name)
	w.Call.Args = append(w.Call.Args, expected, px, value, patches)
	w.bytes += len(expected) + len(value)
	w.Call.Large = w.bytes > LargeBytes
}

// Swapped reports whether a swap was done, or the only key's present value.
func Swapped(rest []any) (done bool, now Found) {
	switch len(rest) {
	case 0:
		return true, Found{}
	case 1:
		return false, Found{}
	}
	return false, FoundIn(rest[1])
}

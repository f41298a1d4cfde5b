package script

import (
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

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

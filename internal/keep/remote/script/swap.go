package script

import (
	"strconv"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// Swapping is a call of Swap under construction.
type Swapping struct {
	Call   servers.Call
	moreMs uint64
	bytes  int // of values
}

// NewSwap returns a swap without keys, decided at a time: the servers', or the caller's. With values it
// returns the values of keys that differ.
func (s *Scripts) NewSwap(decidedNs int64, keys int, values bool) *Swapping {
	w := &Swapping{Call: servers.Call{
		Script: s.Swap, Keys: make([]string, 0, keys), Args: make([]any, 0, 4+4*keys),
	}}
	if s.callersTime {
		w.moreMs = hourMs
	}
	first := "1"
	if values {
		first = ""
	}
	if s.callersTime {
		w.Call.Args = append(w.Call.Args, strconv.FormatInt(decidedNs, 10), first, "", "")
	} else {
		w.Call.Args = append(w.Call.Args, "", first, decidedNs/nsPerSec, decidedNs%nsPerSec)
	}
	return w
}

// Key adds a key with its expected value, its new state, nil to leave it, and stamps.
func (w *Swapping) Key(name string, f *Found, to *limiter.State, stamps limiter.Stamps, serverNs int64) {
	expected, value := "-", ""
	switch {
	case f.Value != "":
		expected = "=" + f.Value // foreign or not
	case f.Err != nil:
		expected = "?"
	}
	px := ""
	switch {
	case to == nil:
	case to.ExpiresNs <= serverNs:
		px = "-"
	default:
		px = strconv.FormatUint(pxOf(to, serverNs, w.moreMs), 10)
		value = ValueOf(to)
	}
	w.Call.Keys = append(w.Call.Keys, name)
	w.Call.Args = append(w.Call.Args, expected, px, value, stampsArg(stamps, len(value)-payloadBytes(to)))
	w.bytes += len(expected) + len(value)
	w.Call.Large = w.bytes > LargeBytes
}

// stampsArg encodes the stamps of a value whose payload begins at payloadAt.
func stampsArg(stamps limiter.Stamps, payloadAt int) string {
	var b []byte
	for _, p := range stamps {
		sign, at := byte('+'), payloadAt+p.At
		switch {
		case p.Less:
			sign = '-'
		case p.Twice:
			sign = '*'
		case p.Ends:
			sign = '!'
		}
		if p.At == limiter.ExpiresAt {
			at = expiresAt
		}
		b = append(strconv.AppendInt(append(b, sign), int64(at), 10), ' ')
		b = append(strconv.AppendInt(b, p.FromNs, 10), ' ')
		b = strconv.AppendInt(b, p.MostNs, 10)
	}
	return string(b)
}

func payloadBytes(s *limiter.State) int {
	if s == nil {
		return 0
	}
	return len(s.Payload)
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

package remote

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// keyScripts are what is done to keys of one step. The first argument of each is the time or, for the server's, nothing; the first
// that each returns is the time. All are decimal numbers of nanoseconds.
type keyScripts struct {
	// read returns what stands at each key. ARGV[2] is how many bytes that may be; if it is more, it returns only the time.
	read *servers.Script
	// swap writes keys if all have what was found there; else it returns, for each that has not, its number and what it has, or
	// only the first number where ARGV[2] is 1. ARGV[3] and ARGV[4] are the time at which what is written was
	// decided, as seconds and nanoseconds, or nothing if its stamps are right. If it is not yet that time, it
	// is as if all keys had something else. A key has four arguments: what was found ('-' for nothing, '?'
	// for what is not ours, or '=' and the value), for how many milliseconds to keep what is written (nothing
	// to write nothing, '-' to delete, '0' for ever), that, and its stamps, which become those of the time at
	// which it is written: of each the sign ('*' for twice as much), where it is, and from when on and by how
	// much at most it changes.
	swap *servers.Script
	// remove deletes keys, and returns the head of each value; only the time if one of them is not ours. It leaves a decimal
	// number alone that is no TAT after now: that may be a counter of somebody's. ARGV[2] is how long a head is.
	remove *servers.Script
	// scan returns the cursor to continue with, and the names and heads of strings. Its arguments are the cursor, a pattern of
	// names, how many to visit, and how long a head is. The keys are none that it is given: a cluster would not execute it.
	scan *servers.Script
	// native decides requests: see nativeScript.
	native *servers.Script
}

//go:embed read.lua
var readScript string

//go:embed swap.lua
var swapScript string

//go:embed remove.lua
var removeScript string

//go:embed scan.lua
var scanScript string

func newKeyScripts(ofCallers bool) keyScripts {
	longer := "0"
	if ofCallers {
		longer = strconv.Itoa(hourMs)
	}
	text := strings.NewReplacer("--TIME", luaTime, "LONGER", longer,
		"MOST", strconv.Itoa(maxValueBytes), "HEAD", strconv.Itoa(wholeBytes))
	script := func(source string) *servers.Script {
		return servers.NewScript(text.Replace(strings.ReplaceAll(source, "--GET", luaGet)))
	}
	return keyScripts{read: script(readScript), swap: script(swapScript), remove: script(removeScript), scan: script(scanScript), native: script(nativeScript)}
}

const luaTime = `local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = t[1] .. string.format('%06d', t[2]) .. '000'
end`

// luaGet is a function that returns a value that may be a state, false for none, 0 for what cannot be a
// state, true for a state that is longer than most, and a table for an error of the server. It reads only
// the head of a value, unless that begins a state and says how long it is: another program's value may have
// any length.
//
//go:embed get.lua
var luaGet string

// call has a script executed at the server of a key, waits for replicas if it writes, and returns its reply, of which the first is
// the time. The error is a store.Failure or of package limiter.
func (s *Store) call(ctx context.Context, key string, c *servers.Call) (rest []any, serverNs int64, err error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	wait := s.Wait
	if c.Script == s.keyScripts.read || c.Script == s.keyScripts.scan {
		wait = 0
	}
	if err := s.Pool.Do(ctx, key, c, wait); err != nil {
		f := failedOf(err)
		s.counts.failed.Add(f.Reason)
		return nil, 0, failureOf(f)
	}
	return replyOf(c.Reply)
}

func replyOf(reply any) (rest []any, serverNs int64, err error) {
	all, _ := reply.([]any)
	if len(all) == 0 {
		return nil, 0, store.Failure{Line: fmt.Sprintf("ERR a script of ours returned %.40q", fmt.Sprint(reply))}
	}
	if serverNs, err = timeIn(all[0]); err != nil {
		return nil, 0, store.Failure{Line: "ERR " + err.Error()}
	}
	return all[1:], serverNs, nil
}

// timeArg is the first argument of each script: the time, or nothing if it is to be the server's.
func (s *Store) timeArg(nowNs int64) any {
	if s.CallersTime {
		return strconv.FormatInt(nowNs, 10)
	}
	return ""
}

// readCall returns a call that reads what stands at keys. Unless it is large, it returns only the time if
// that is too long.
func (s *Store) readCall(nowNs int64, names []string, large bool) *servers.Call {
	most := largeBytes
	if large {
		most = txBytes
	}
	args := []any{s.timeArg(nowNs), most}
	return &servers.Call{Script: s.keyScripts.read, Keys: names, Args: args, Large: large}
}

// read reads what stands at keys of one step.
func (s *Store) read(ctx context.Context, nowNs int64, names []string) (serverNs int64, at []found, err error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	sentNs := s.Now()
	rest, serverNs, err := s.call(ctx, names[0], s.readCall(nowNs, names, false))
	if err == nil && len(rest) != len(names) {
		rest, serverNs, err = s.call(ctx, names[0], s.readCall(nowNs, names, true))
	}
	if err != nil {
		return 0, nil, err
	}
	if len(rest) != len(names) {
		return 0, nil, errTooLarge
	}
	at = make([]found, len(names))
	for i, v := range rest {
		at[i] = foundIn(v)
		s.learn(names[i], raised, &at[i].state, sentNs)
	}
	return serverNs, at, nil
}

// swap is a call of swapScript.
type swap struct {
	call   servers.Call
	moreMs uint64
	bytes  int // of values
}

// newSwap returns a swap of no keys yet, decided at a time: the servers', or the caller's if that is the
// scripts'. With values it returns the values of keys that have others.
func (s *Store) newSwap(decidedNs int64, keys int, values bool) *swap {
	w := &swap{call: servers.Call{
		Script: s.keyScripts.swap, Keys: make([]string, 0, keys), Args: make([]any, 0, 4+4*keys),
	}}
	if s.CallersTime {
		w.moreMs = hourMs
	}
	first := "1"
	if values {
		first = ""
	}
	if s.CallersTime {
		w.call.Args = append(w.call.Args, strconv.FormatInt(decidedNs, 10), first, "", "")
	} else {
		w.call.Args = append(w.call.Args, "", first, decidedNs/nsPerSec, decidedNs%nsPerSec)
	}
	return w
}

// key adds a key, what is expected there, and what it becomes, with its stamps; nil is for one that is left
// as it is.
func (w *swap) key(name string, f *found, to *limiter.State, stamps limiter.Stamps, serverNs int64) {
	expected, value := "-", ""
	switch {
	case f.value != "":
		expected = "=" + f.value // be it ours or not
	case f.err != nil:
		expected = "?"
	}
	px := ""
	switch {
	case to == nil:
	case to.ExpiresNs <= serverNs:
		px = "-"
	default:
		px = strconv.FormatUint(pxOf(to, serverNs, w.moreMs), 10)
		value = valueOf(to)
	}
	w.call.Keys = append(w.call.Keys, name)
	w.call.Args = append(w.call.Args, expected, px, value, stampsArg(stamps, len(value)-payloadBytes(to)))
	w.bytes += len(expected) + len(value)
	w.call.Large = w.bytes > largeBytes
}

// stampsArg returns the stamps of a value whose payload begins there.
func stampsArg(stamps limiter.Stamps, payloadAt int) string {
	var b []byte
	for _, p := range stamps {
		sign, at := byte('+'), payloadAt+p.At
		if p.Less {
			sign = '-'
		} else if p.Twice {
			sign = '*'
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

// swapped is whether a swap was done, and what stands at the only key where it was not.
func swapped(rest []any) (done bool, now found) {
	switch len(rest) {
	case 0:
		return true, found{}
	case 1:
		return false, found{}
	}
	return false, foundIn(rest[1])
}

// Package script has the Lua scripts that a remote store's servers execute, what each takes and returns, and
// the values that they keep. All of it is pure: it sends nothing.
package script

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// Scripts are what is done to keys of one step. The first argument of each but Funnel is the time or,
// for the server's, nothing; the first that each returns is the time. All are decimal numbers of nanoseconds.
type Scripts struct {
	// callersTime has scripts decide at times that are given to them, and lets keys live for an hour longer.
	callersTime bool

	// Funnel decides requests of plain funnels: see Runs.
	Funnel *servers.Script
	// Read returns what stands at each key. ARGV[2] is how many bytes that may be; if it is more, it returns
	// only the time.
	Read *servers.Script
	// Swap writes keys if all have what was found there; else it returns, for each that has not, its number
	// and what it has, or only the first number where ARGV[2] is 1. ARGV[3] and ARGV[4] are the time at which
	// what is written was decided, as seconds and nanoseconds, or nothing if its stamps are right. If it is
	// not yet that time, it is as if all keys had something else. A key has four arguments: what was found
	// ('-' for nothing, '?' for what is not ours, or '=' and the value), for how many milliseconds to keep
	// what is written (nothing to write nothing, '-' to delete, '0' for ever), that, and its stamps, which
	// become those of the time at which it is written: of each the sign ('*' for twice as much), where it is,
	// and from when on and by how much at most it changes.
	Swap *servers.Script
	// Remove deletes keys, and returns the head of each value; only the time if one of them is not ours. It
	// leaves a decimal number alone that is no TAT after now: that may be a counter of somebody's. ARGV[2] is
	// how long a head is.
	Remove *servers.Script
	// Scan returns the cursor to continue with, and the names and heads of strings. Its arguments are the
	// cursor, a pattern of names, how many to visit, and how long a head is. The keys are none that it is
	// given: a cluster would not execute it.
	Scan *servers.Script
	// Native decides requests of fixed windows and buckets: see NativeArgs.
	Native *servers.Script
}

//go:embed funnel.lua
var funnelScript string

//go:embed read.lua
var readScript string

//go:embed swap.lua
var swapScript string

//go:embed remove.lua
var removeScript string

//go:embed scan.lua
var scanScript string

//go:embed native.lua
var nativeScript string

// luaGet is a function that returns a value that may be a state, false for none, 0 for what cannot be a
// state, true for a state that is longer than most, and a table for an error of the server. It reads only
// the head of a value, unless that begins a state and says how long it is: another program's value may have
// any length.
//
//go:embed get.lua
var luaGet string

const (
	serversTime = "local t=call('TIME')\nlocal S,N=t[1]+0,t[2]*1000"
	callersTime = "local S,N=ARGV[1]+0,ARGV[2]+0"
	// hourMs is how much longer than it should a key lives whose time is not the servers'.
	hourMs = 3_600_000

	nsPerSec = 1_000_000_000
)

const luaTime = `local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = t[1] .. string.format('%06d', t[2]) .. '000'
end`

// New returns the scripts, which decide at the servers' times, or at those that callers give.
func New(ofCallers bool) *Scripts {
	longer := "0"
	if ofCallers {
		longer = strconv.Itoa(hourMs)
	}
	text := strings.NewReplacer("--TIME", luaTime, "LONGER", longer,
		"MOST", strconv.Itoa(maxValueBytes), "HEAD", strconv.Itoa(wholeBytes))
	script := func(source string) *servers.Script {
		return servers.NewScript(text.Replace(strings.ReplaceAll(source, "--GET", luaGet)))
	}
	return &Scripts{
		callersTime: ofCallers,
		Funnel:      funnelOf(ofCallers),
		Read:        script(readScript), Swap: script(swapScript), Native: script(nativeScript),
		Remove: script(removeScript), Scan: script(scanScript),
	}
}

func funnelOf(ofCallers bool) *servers.Script {
	text := strings.NewReplacer("--TIME", serversTime, "FIRST+3", "4", "FIRST+2", "3", "FIRST+1", "2", "FIRST", "1", "+LONGER", "",
		"AT", "' '..t[1]..' '..t[2]")
	if ofCallers {
		text = strings.NewReplacer("--TIME", callersTime, "FIRST+3", "6", "FIRST+2", "5", "FIRST+1", "4", "FIRST", "3",
			"LONGER", strconv.Itoa(hourMs), "AT", "' '..ARGV[1]..' '..ARGV[2]")
	}
	return servers.NewScript(text.Replace(funnelScript))
}

// Writes reports whether a script may change keys.
func (s *Scripts) Writes(of *servers.Script) bool { return of != s.Read && of != s.Scan }

// timeArg is the first argument of most scripts: the time, or nothing if it is to be the server's.
func (s *Scripts) timeArg(nowNs int64) any {
	if s.callersTime {
		return strconv.FormatInt(nowNs, 10)
	}
	return ""
}

// ReadCall returns a call that reads what stands at keys. Unless it is large, it returns only the time if
// that is too long.
func (s *Scripts) ReadCall(nowNs int64, names []string, large bool) *servers.Call {
	return &servers.Call{Script: s.Read, Keys: names, Args: s.ReadArgs(nowNs, large), Large: large}
}

// ReadArgs returns the arguments of such a call.
func (s *Scripts) ReadArgs(nowNs int64, large bool) []any {
	most := LargeBytes
	if large {
		most = MaxStepBytes
	}
	return []any{s.timeArg(nowNs), most}
}

// RemoveCall returns a call that deletes keys.
func (s *Scripts) RemoveCall(nowNs int64, names []string) *servers.Call {
	return &servers.Call{Script: s.Remove, Keys: names, Args: []any{s.timeArg(nowNs), headBytes}}
}

// ScanCall returns a call that visits so many keys whose names begin with a prefix, from a cursor on.
func (s *Scripts) ScanCall(nowNs int64, cursor uint64, prefix string, count int) *servers.Call {
	return &servers.Call{Script: s.Scan, Args: []any{
		s.timeArg(nowNs), strconv.FormatUint(cursor, 10), globQuoted(prefix) + "*", max(count, 1), headBytes,
	}}
}

// globQuoted returns a pattern that only the text matches.
func globQuoted(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if strings.IndexByte(`*?[]\^-`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// ReplyOf returns what a script but Funnel has returned behind the time.
func ReplyOf(reply any) (rest []any, serverNs int64, err error) {
	all, _ := reply.([]any)
	if len(all) == 0 {
		return nil, 0, store.Failure{Line: fmt.Sprintf("ERR a script of ours returned %.40q", fmt.Sprint(reply))}
	}
	if serverNs, err = timeIn(all[0]); err != nil {
		return nil, 0, store.Failure{Line: "ERR " + err.Error()}
	}
	return all[1:], serverNs, nil
}

// timeIn reads the time that the scripts return.
func timeIn(reply any) (serverNs int64, err error) {
	text, _ := reply.(string)
	if serverNs, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, fmt.Errorf("remote: a script returned %q as the time", text)
	}
	return serverNs, nil
}

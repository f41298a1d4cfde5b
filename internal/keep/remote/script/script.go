// Package script has the Lua scripts of a remote store's servers, their arguments and replies, and the
// encoding of values. It is pure.
package script

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Scripts act on keys of one step. The first argument of each but Funnel is the time, or nothing for the
// server's; the first returned value is the time. All are decimal nanoseconds.
type Scripts struct {
	// callersTime makes scripts decide at given times, and keeps keys for an hour longer.
	callersTime bool

	// Funnel decides requests of plain funnels: see Runs.
	Funnel *servers.Script
	// Read returns the values of keys, or only the time if they exceed ARGV[2] bytes.
	Read *servers.Script
	// Swap writes keys if all have the expected values. Otherwise it returns the number and value of each
	// that differs, or only the first number if ARGV[2] is 1. ARGV[3] and ARGV[4] are the time of the
	// decision in seconds and nanoseconds, or nothing if it is the time of writing, and ARGV[5] the
	// nanoseconds after it, or nothing for any: before or later it acts as if all keys differed. A key has
	// four arguments: the expected value ('-' for none, '?' for a foreign one, or '=' and the value), the
	// milliseconds to keep the new one (nothing to write nothing, '-' to delete, '0' forever), the new value,
	// and its patches: each a position, and its start and largest change.
	Swap *servers.Script
	// Remove deletes keys and returns the head of each value, or only the time if one is foreign. It spares
	// decimal numbers that are no TAT after now, which may be somebody's counters. ARGV[2] is the length of a
	// head.
	Remove *servers.Script
	// Scan returns the next cursor, and names and heads of strings. Its arguments are the cursor, a pattern,
	// a count and the length of a head. Its keys are not declared: it does not run on a cluster.
	Scan *servers.Script
	// Native decides requests of fixed windows and buckets: see NativeArgs.
	Native *servers.Script
}

// sources has the scripts. They share get.lua, a function that returns a possible state, false for none, 0
// for something else, true for a state longer than most, and a table for a server's error. It reads only the
// head of a value, unless that begins a state of known length: a foreign value may have any.
//
//go:embed *.lua
var sources embed.FS

func sourceOf(name string) string {
	text, _ := sources.ReadFile(name + ".lua") // it is there
	return string(text)
}

const (
	serversTime = "local t=call('TIME')\nlocal S,N=t[1]+0,t[2]*1000"
	callersTime = "local S,N=ARGV[1]+0,ARGV[2]+0"
	// hourMs is the additional life of keys at callers' times.
	hourMs = 3_600_000

	nsPerSec = 1_000_000_000
)

const luaTime = `local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = t[1] .. string.format('%06d', t[2]) .. '000'
end`

// New returns scripts that decide at the servers' times, or at callers'.
func New(ofCallers bool) *Scripts {
	longer := "0"
	if ofCallers {
		longer = strconv.Itoa(hourMs)
	}
	text := strings.NewReplacer("--TIME", luaTime, "LONGER", longer,
		"MOST", strconv.Itoa(maxValueBytes), "HEAD", strconv.Itoa(wholeBytes))
	script := func(name string) *servers.Script {
		return servers.NewScript(text.Replace(strings.ReplaceAll(sourceOf(name), "--GET", sourceOf("get"))))
	}
	return &Scripts{
		callersTime: ofCallers,
		Funnel:      funnelOf(ofCallers),
		Read:        script("read"), Swap: script("swap"), Native: script("native"),
		Remove: script("remove"), Scan: script("scan"),
	}
}

func funnelOf(ofCallers bool) *servers.Script {
	text := strings.NewReplacer("--TIME", serversTime, "FIRST+3", "4", "FIRST+2", "3", "FIRST+1", "2", "FIRST", "1", "+LONGER", "",
		"AT", "' '..t[1]..' '..t[2]")
	if ofCallers {
		text = strings.NewReplacer("--TIME", callersTime, "FIRST+3", "6", "FIRST+2", "5", "FIRST+1", "4", "FIRST", "3",
			"LONGER", strconv.Itoa(hourMs), "AT", "' '..ARGV[1]..' '..ARGV[2]")
	}
	return servers.NewScript(text.Replace(sourceOf("funnel")))
}

func (s *Scripts) Writes(of *servers.Script) bool { return of != s.Read && of != s.Scan }

// timeArg returns the time argument, nothing for the server's time.
func (s *Scripts) timeArg(nowNs int64) any {
	if s.callersTime {
		return strconv.FormatInt(nowNs, 10)
	}
	return ""
}

// ReadCall returns a call that reads keys; unless large, it returns only the time for long values.
func (s *Scripts) ReadCall(nowNs int64, names []string, large bool) *servers.Call {
	return &servers.Call{Script: s.Read, Keys: names, Args: s.ReadArgs(nowNs, large), Large: large}
}

func (s *Scripts) ReadArgs(nowNs int64, large bool) []any {
	most := LargeBytes
	if large {
		most = MaxStepBytes
	}
	return []any{s.timeArg(nowNs), most}
}

func (s *Scripts) RemoveCall(nowNs int64, names []string) *servers.Call {
	return &servers.Call{Script: s.Remove, Keys: names, Args: []any{s.timeArg(nowNs), headBytes}}
}

// ScanCall returns a call that visits about count keys with a prefix from a cursor on.
func (s *Scripts) ScanCall(nowNs int64, cursor uint64, prefix string, count int) *servers.Call {
	return &servers.Call{Script: s.Scan, Args: []any{
		s.timeArg(nowNs), strconv.FormatUint(cursor, 10), globQuoted(prefix) + "*", max(count, 1), headBytes,
	}}
}

// globQuoted returns a pattern that matches only the text.
func globQuoted(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`, `^`, `\^`, `-`, `\-`).Replace(text)
}

// ReplyOf returns a reply without its time; it is not for Funnel's.
func ReplyOf(reply any) (rest []any, serverNs int64, err error) {
	all, _ := reply.([]any)
	if len(all) == 0 {
		return nil, 0, store.Failure{Line: fmt.Sprintf("ERR a script of ours returned %.40q", fmt.Sprint(reply))}
	}
	text, _ := all[0].(string)
	if serverNs, err = strconv.ParseInt(text, 10, 64); err != nil {
		return nil, 0, store.Failure{Line: fmt.Sprintf("ERR remote: a script returned %q as the time", text)}
	}
	return all[1:], serverNs, nil
}

// The native script decides requests of fixed windows or buckets on one key at one time, by the arithmetic of
// packages window and bucket. It returns the time and the previous value, from which the results follow. It
// returns only the time, without a change, for another kind or a number too large for a double; then a swap
// decides.
//
// ARGV is the time or nothing, and as two numbers; the kind; and for each run of equal requests their number,
// the quantity, the maximum, the period, and 1 if denied requests count. Times and periods are two numbers of
// 32 bits, the higher first, as Lua's are exact to 53.

// NativeMost exceeds any number given to a native script, with room for sums.
const NativeMost = 1 << 50

func IsNative(q *store.Request) bool {
	if k := q.Rule.Kind; k != limiter.FixedWindow && k != limiter.Bucket || q.Rule.Flags&(limiter.Debit|limiter.AtMost) != 0 {
		return false
	}
	most := q.Rule.Packed[0]
	return most < NativeMost && q.Quantity < NativeMost && q.Quantity > -NativeMost
}

// NativeArgs returns the native script's arguments without runs.
func (s *Scripts) NativeArgs(kind limiter.Kind, nowNs int64) []any {
	args := append(make([]any, 0, 4+6*4), s.timeArg(nowNs))
	if s.callersTime {
		return append(args, nowNs>>32, nowNs&(1<<32-1), int64(kind))
	}
	return append(args, int64(0), int64(0), int64(kind))
}

// AppendNativeRun appends n equal requests to the native script's arguments.
func AppendNativeRun(args []any, n int64, q *store.Request) []any {
	r := &q.Rule
	most, period, countDenied := r.Packed[0], uint64(r.Packed[1]), int64(0) // 0 for a bucket
	if r.Flags&limiter.CountDenied != 0 {
		countDenied = 1
	}
	return append(args, n, q.Quantity, most, int64(period>>32), int64(period&(1<<32-1)), countDenied)
}

// A state is a Redis string. A funnel's is its TAT as redis-cell writes it, a decimal number of nanoseconds,
// so that modules and cellservers can share keys. Others are statePrefix and limiter.AppendState's bytes, by
// the servers' clock. The time to live is rounded up to milliseconds, to forgive no debt; a state may expire
// before its key.
const statePrefix = "cl1:"

const (
	// headBytes of a value contain its expiry: prefix, kind and time, or any TAT.
	headBytes = 20
	// expiresAt is the expiry's position after prefix and kind; a TAT is the whole value.
	expiresAt = len(statePrefix) + 1
	// maxValueBytes exceeds any value.
	maxValueBytes = limiter.MaxStateBytes + 64
	// wholeBytes of a value are always read: most states are shorter.
	wholeBytes = 512
	// LargeBytes is the limit for calls that share a pipeline with other keys.
	LargeBytes = 4 << 10
	// MaxStepBytes bounds the states of a step's keys, read and written.
	MaxStepBytes = 4 << 20
)

func ValueOf(s *limiter.State) string {
	if s.Kind == limiter.Funnel {
		return strconv.FormatInt(s.ExpiresNs, 10)
	}
	return string(limiter.AppendState([]byte(statePrefix), s))
}

// ReadValue returns a value's state with its own payload, or limiter.ErrWrongType for a foreign value.
func ReadValue(v string) (s limiter.State, err error) {
	encoded, ok := strings.CutPrefix(v, statePrefix)
	if !ok {
		if s.ExpiresNs, ok = readTAT(v); !ok {
			err = limiter.ErrWrongType
		}
		return s, err
	}
	s, rest, ok := limiter.ReadState([]byte(encoded))
	if !ok || len(rest) > 0 || s.Kind == limiter.Funnel {
		return limiter.State{}, limiter.ErrWrongType
	}
	return s, nil
}

// readTAT reads a decimal number as written by us and redis-cell. A counter's is a time long ago.
func readTAT(v string) (tatNs int64, ok bool) {
	if len(v) == 0 || v[0] < '0' || v[0] > '9' || v[0] == '0' && len(v) > 1 {
		return 0, false
	}
	tatNs, err := strconv.ParseInt(v, 10, 64)
	return tatNs, err == nil
}

// ReadHead returns the kind and expiry from a value's head.
func ReadHead(head string) (k limiter.Kind, expiresNs int64, ok bool) {
	encoded, ok := strings.CutPrefix(head, statePrefix)
	if !ok {
		expiresNs, ok = readTAT(head)
		return limiter.Funnel, expiresNs, ok
	}
	k, expiresNs, ok = limiter.ReadHead([]byte(encoded))
	return k, expiresNs, ok && k != limiter.Funnel
}

// pxOf returns the milliseconds to keep a state, 0 for one that never expires.
func pxOf(s *limiter.State, serverNs int64, moreMs uint64) uint64 {
	if s.ExpiresNs == limiter.NeverNs {
		return 0
	}
	const nsPerMs = 1_000_000
	ns := funnel.Since(serverNs, s.ExpiresNs)
	return ns/nsPerMs + min(1, ns%nsPerMs) + moreMs
}

// Found is a key's value as a script found it, and its meaning.
type Found struct {
	Absent bool
	Value  string
	State  limiter.State
	Err    error // limiter.ErrWrongType
}

// FoundIn reads a script's reply for a key: nothing, a value, or 0 for what is no string.
func FoundIn(reply any) Found {
	switch v := reply.(type) {
	case nil:
		return Found{Absent: true}
	case string:
		s, err := ReadValue(v)
		return Found{Value: v, State: s, Err: err}
	default:
		return Found{Err: limiter.ErrWrongType}
	}
}

// Package argument reads the arguments of commands as Redis does. All of it is safe for concurrent use.
package argument

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"cellserver/internal/base/duration"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

func Int(arg []byte) (int64, error) {
	n, ok := resp.ParseInt(arg)
	if !ok {
		return 0, reply.ErrNotInteger
	}
	return n, nil
}

// YesNo reads YES or NO.
func YesNo(arg []byte) (bool, error) { return either(arg, "yes", "no") }

// OnOff reads ON or OFF.
func OnOff(arg []byte) (bool, error) { return either(arg, "on", "off") }

func either(arg []byte, yes, no string) (bool, error) {
	switch glob.Fold(arg) {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return false, reply.ErrSyntax
}

// CloneAll copies arguments, which are parts of a reused buffer, in a few allocations however many they are.
func CloneAll(args [][]byte) [][]byte {
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	all, bytes := make([][]byte, len(args)), make([]byte, 0, size)
	for i, arg := range args {
		from := len(bytes)
		bytes = append(bytes, arg...)
		all[i] = bytes[from:len(bytes):len(bytes)]
	}
	return all
}

// HeaderBytes is the overhead of a stored argument.
const HeaderBytes = 24

// Memory returns the bytes of stored arguments.
func Memory(args [][]byte) (bytes int) {
	for _, arg := range args {
		bytes += HeaderBytes + len(arg)
	}
	return bytes
}

// Database reads the number of a database.
func Database(arg []byte, databases int) (db uint16, err error) {
	n, err := Int(arg)
	switch {
	case err != nil:
		return 0, err
	case n != int64(int32(n)):
		return 0, reply.ErrInt32
	case n < 0 || n >= int64(databases):
		return 0, reply.ErrDBRange
	}
	return uint16(n), nil
}

// Script splits the arguments of EVAL and its like into keys and others.
func Script(args [][]byte) (keys, argv [][]byte, err error) {
	n, ok := resp.ParseInt(args[2])
	switch {
	case !ok:
		return nil, nil, reply.ErrNotInteger
	case n > int64(len(args)-3):
		return nil, nil, reply.Error("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return nil, nil, reply.Error("ERR Number of keys can't be negative")
	}
	return args[3 : 3+n], args[3+n:], nil
}

const (
	maxNames        = 128 // of one call, such as CONFIG GET: a name of six bytes may cause kilobytes of reply
	maxPatternBytes = 64  // longer than any name; matching costs grow with it
)

// CheckNames refuses too many, or too long, names or patterns of one command.
func CheckNames(names [][]byte) error {
	if len(names) > maxNames {
		return reply.Error("ERR more than " + strconv.Itoa(maxNames) + " names or patterns; ask for all of them instead")
	}
	return nil
}

// NameMatcher returns a case-insensitive matcher for names of commands or settings.
func NameMatcher(pattern []byte) func(name string) bool {
	if len(pattern) > maxPatternBytes {
		return func(string) bool { return false }
	}
	compiled := glob.CompileFold(pattern)
	return func(name string) bool { return compiled.Matches([]byte(name)) }
}

// Number reads a number by redis-cell's grammar.
func Number(arg []byte) (int64, error) {
	n, ok := integer(arg)
	if !ok {
		return 0, notInteger(arg)
	}
	return n, nil
}

func notInteger(arg []byte) error {
	return reply.Error("ERR Couldn't parse as integer: " + resp.Printable(arg))
}

// Numbers fills into from args.
func Numbers(into []int64, args [][]byte) (err error) {
	for i := range into {
		if into[i], err = Number(args[i]); err != nil {
			return err
		}
	}
	return nil
}

// Timeout reads a blocking time in seconds with a fraction, and returns nanoseconds; 0 blocks indefinitely.
func Timeout(arg []byte) (ns int64, err error) {
	sec, err := strconv.ParseFloat(string(arg), 64)
	switch {
	case sec < 0 && !math.IsInf(sec, 0):
		return 0, reply.Error("ERR timeout is negative")
	case math.IsInf(sec, 0) || sec > math.MaxInt64/1000: // Redis's milliseconds
		return 0, reply.Error("ERR timeout is out of range")
	case err != nil || math.IsNaN(sec):
		return 0, reply.Error("ERR timeout is not a float or out of range")
	case sec >= math.MaxInt64/1e9:
		return math.MaxInt64, nil
	}
	return int64(math.Ceil(sec * 1e9)), nil
}

const nsPerMs = 1_000_000

// Reserve returns the operation of CL.RESERVE.
func Reserve(limit funnel.Limit, amount, ttlNs int64, unit funnel.Unit) (o limiter.Operation, err error) {
	if amount < 1 {
		return o, reply.Error("ERR amount must be at least 1; CL.PEEK looks at a funnel, and CL.REFUND gives units back")
	}
	return limiter.Operation{
		Verb: limiter.Reserve, Unit: unit, Funnel: limit, Quantity: amount, ID: rand.Uint64N(limiter.MaxUndatedID + 1), Dated: true, TTLNs: ttlNs,
	}, nil
}

// Commit returns the operation of CL.COMMIT. late is nil without LATE.
func Commit(id []byte, actual int64, late *funnel.Limit) (o limiter.Operation, err error) {
	o = limiter.Operation{Verb: limiter.Commit, Quantity: actual}
	if o.ID, err = strconv.ParseUint(string(id), 10, 64); err != nil {
		return o, reply.Error("ERR id must be what CL.RESERVE has returned, got " + resp.Printable(id))
	}
	if actual < 0 {
		return o, &funnel.ArgumentError{Name: "actual", Value: actual}
	}
	if late != nil {
		o.Late, o.Funnel = true, *late
	}
	return o, nil
}

// Acquire returns the operation of CL.CONCURRENCY ACQUIRE, and its token: a new one for nil.
func Acquire(most, leaseNs int64, token []byte, unit funnel.Unit) (o limiter.Operation, _ []byte, err error) {
	if most < 1 || most > limiter.MaxHolders {
		return o, nil, reply.Error("ERR max must be 1 to " + strconv.Itoa(limiter.MaxHolders) + ", got " + strconv.FormatInt(most, 10))
	}
	if token == nil {
		token = fmt.Appendf(nil, "%016x", rand.Uint64())
	}
	o = limiter.Operation{Verb: limiter.Acquire, Unit: unit, Max: most, TTLNs: leaseNs}
	o.ID, err = Holder(token)
	return o, token, err
}

// Release returns the operation of CL.CONCURRENCY RELEASE.
func Release(token []byte) (o limiter.Operation, err error) {
	o.Verb = limiter.Release
	o.ID, err = Holder(token)
	return o, err
}

const maxTokenBytes = 64

// Holder returns the ID of a token's holder.
func Holder(token []byte) (id uint64, err error) {
	if len(token) == 0 || len(token) > maxTokenBytes {
		return 0, reply.Error("ERR token must have 1 to " + strconv.Itoa(maxTokenBytes) + " bytes")
	}
	sum := sha256.Sum256(token)
	return binary.BigEndian.Uint64(sum[:]), nil
}

const (
	maxDurationBytes = 64 // more than any valid duration has
	maxDurationMs    = funnel.MaxToleranceNs / nsPerMs
)

// Duration reads milliseconds, or numbers with units, such as 30s.
func Duration(name string, arg []byte) (ns int64, err error) {
	if ms, ok := integer(arg); ok {
		return Milliseconds(name, ms)
	}
	d, err := duration.Parse(string(arg[:min(len(arg), maxDurationBytes)]))
	if err != nil || len(arg) > maxDurationBytes {
		return 0, reply.Error("ERR " + name + " must be milliseconds, such as 30000, " +
			"or a time with a unit, such as 30s, got " + resp.Printable(arg))
	}
	return int64(d), checkDuration(name, int64(d), resp.Printable(arg))
}

// Milliseconds returns a duration in nanoseconds.
func Milliseconds(name string, ms int64) (ns int64, err error) {
	ns = max(-1, min(ms, maxDurationMs+1)) * nsPerMs
	return ns, checkDuration(name, ns, strconv.FormatInt(ms, 10))
}

func checkDuration(name string, ns int64, said string) error {
	switch {
	case ns < nsPerMs:
		return reply.Error("ERR " + name + " must be at least 1 ms, got " + said)
	case ns > maxDurationMs*nsPerMs:
		return reply.Error("ERR " + name + " is more than 2^62 ns (146 years)")
	}
	return nil
}

package argument

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
)

const nsPerMs = 1_000_000

// Reserve returns the operation of CL.RESERVE.
func Reserve(limit funnel.Limit, amount, ttlNs int64, unit funnel.Unit) (o limiter.Operation, err error) {
	if amount < 1 {
		return o, reply.Cell("amount must be at least 1; CL.PEEK looks at a funnel, and CL.REFUND gives units back")
	}
	return limiter.Operation{
		Verb: limiter.Reserve, Unit: unit, Funnel: limit, Quantity: amount, ID: rand.Uint64N(limiter.MaxUndatedID + 1), Dated: true, TTLNs: ttlNs,
	}, nil
}

// Commit returns the operation of CL.COMMIT. late is nil without LATE.
func Commit(id []byte, actual int64, late *funnel.Limit) (o limiter.Operation, err error) {
	o = limiter.Operation{Verb: limiter.Commit, Quantity: actual}
	if o.ID, err = strconv.ParseUint(string(id), 10, 64); err != nil {
		return o, reply.Cell("id must be what CL.RESERVE has returned, got " + resp.Printable(id))
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
		return o, nil, reply.Cell("max must be 1 to " + strconv.Itoa(limiter.MaxHolders) + ", got " + strconv.FormatInt(most, 10))
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
		return 0, reply.Cell("token must have 1 to " + strconv.Itoa(maxTokenBytes) + " bytes")
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
	if ms, err := Number(arg); err == nil {
		return Milliseconds(name, ms)
	}
	d, err := time.ParseDuration(string(arg[:min(len(arg), maxDurationBytes)]))
	if err != nil || len(arg) > maxDurationBytes {
		return 0, reply.Cell(name + " must be milliseconds, such as 30000, " +
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
		return reply.Cell(name + " must be at least 1 ms, got " + said)
	case ns > maxDurationMs*nsPerMs:
		return reply.Cell(name + " is more than 2^62 ns (146 years)")
	}
	return nil
}

package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"math/bits"
	"strconv"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/edge/door"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// Headers selects the fields that tell clients what is left.
type Headers uint8

// Headers:
const (
	Draft  Headers = iota // RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11
	Legacy                // X-RateLimit-Limit, -Remaining and -Reset
	Both
	None
)

// String returns the word of --http-headers.
func (h Headers) String() string { return [...]string{"draft", "legacy", "both", "none"}[h] }

// HeadersOf returns the Headers of a word.
func HeadersOf(word string) (h Headers, ok bool) {
	for h := range None + 1 {
		if h.String() == word {
			return h, true
		}
	}
	return 0, false
}

// rate is what is left by one rule.
type rate struct {
	name      []byte // of a limit; nil for one of the caller's own
	number    int    // of the rule, or of the check, if there are several without names; else 0
	rule      string // its name, if there are several; else ""
	unit      string // of the quota, such as usd; "" for requests
	windowSec int64  // 0 for none
	result    *funnel.Result
	denies    bool   // alone
	key       []byte // of a named limit
	partition string // the parameter pk, where several items have one name; else ""
}

// rates are those of an answer.
type rates struct {
	items  []rate
	denied bool            // list only those that deny
	worst  *funnel.Result  // of all
	unit   string          // of worst
	whose  *decide.Request // of worst, in a call about a hold
	near   [][]byte        // the names of limits whose keys are near them
}

// ownName names a limit that the caller gave.
const ownName = "default"

// maxItems bounds the rules in headers: several checks of limits with many rules would exceed what clients
// and proxies take.
const maxItems = 32

// write writes what the answer's fields tell of its rates.
func (h Headers) write(x *Exchange) {
	of, to, b := &x.rates, &x.Answer, x.values[:0]
	if len(of.items) > 0 && (h == Draft || h == Both) {
		items := of.items[:min(len(of.items), maxItems)]
		for i := range items {
			b = items[i].appendPolicy(b)
		}
		to.policyEnd = len(b)
		for i := range items {
			if r := &items[i]; r.denies || !of.denied {
				b = r.appendLimit(b, to.policyEnd, of.denied)
			}
		}
		to.limitEnd = len(b)
	}
	if h != None {
		b = door.AppendNames(b, of.near)
	}
	to.nearEnd = len(b)
	if to.Outcome == door.Limited && of.worst.RetryAfter >= 0 {
		b = strconv.AppendInt(b, secondsOf(of.worst.RetryAfter), 10)
	}
	x.values, to.values = b, b
	if len(of.items) > 0 && (h == Legacy || h == Both) {
		r := of.worst
		ms := timeOf(r, of.denied)
		to.legacy, to.most, to.remaining = true, r.Limit, max(r.Remaining, 0)
		to.resets, to.resetIn = ms >= 0, secondsOf(ms)
	}
}

// timeOf returns the milliseconds until a retry of what is denied, or until all is available.
func timeOf(r *funnel.Result, denied bool) int64 {
	if denied {
		return r.RetryAfter
	}
	return r.ResetAfter
}

// maxInteger is the largest of structured fields (RFC 9651).
const maxInteger = 999_999_999_999_999

func appendParameter(b []byte, name string, n int64) []byte {
	b = append(append(b, name...), '=')
	return strconv.AppendInt(b, max(0, min(n, maxInteger)), 10)
}

// appendName appends the policy's name as a string of structured fields, after a comma between items.
func (r *rate) appendName(b []byte, from int) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return append(r.appendFullName(append(b, '"')), '"')
}

func (r *rate) appendFullName(b []byte) []byte {
	if r.name == nil {
		b = append(b, ownName...)
	} else {
		b = door.AppendEscaped(b, r.name)
	}
	switch {
	case r.rule != "":
		b = door.AppendEscaped(append(b, ':'), r.rule)
	case r.number > 0:
		b = strconv.AppendInt(append(b, ':'), int64(r.number), 10)
	}
	return b
}

func (r *rate) appendPolicy(b []byte) []byte {
	b = appendParameter(r.appendName(b, 0), ";q", r.result.Limit)
	if r.unit != "" {
		b = append(append(append(b, `;qu="`...), r.unit...), '"')
	}
	if r.windowSec > 0 {
		b = appendParameter(b, ";w", r.windowSec)
	}
	return append(b, r.partition...)
}

func (r *rate) appendLimit(b []byte, from int, denied bool) []byte {
	b = appendParameter(r.appendName(b, from), ";r", r.result.Remaining)
	if ms := timeOf(r.result, denied); ms >= 0 && r.result.Limit > 0 {
		b = appendParameter(b, ";t", secondsOf(ms))
	}
	return append(b, r.partition...)
}

// appendRates appends the rates of a decided check.
func appendRates(to []rate, q *decide.Request, windowSec int64) []rate {
	result, by := &q.Result, q.Named
	if by == nil {
		return append(to, rate{windowSec: windowSec, result: result, denies: result.Limited})
	}
	one := rate{name: q.Limit, key: q.Key, unit: by.Unit, result: result, denies: result.Limited}
	switch {
	case by.Constant == limiter.Unlimited:
		return to
	case len(by.Rules) == 1:
		one.windowSec = windowOf(&by.Rules[0].Rule)
		return append(to, one)
	}
	results := by.Results()
	if by.Constant == limiter.Deny || len(results) != len(by.Rules) || results[0].Limit == 0 { // the rules have no results
		return append(to, one)
	}
	for i := range results {
		to = append(to, rate{
			name: q.Limit, key: q.Key, number: i + 1, rule: q.Policy.Rules[i].Name, unit: by.Unit,
			windowSec: windowOf(&by.Rules[i].Rule), result: &results[i], denies: result.Marks.Denied()&(1<<i) != 0,
		})
	}
	return to
}

// unitOf returns the unit of the limit that decided a check; "" for none.
func unitOf(q *decide.Request) string {
	if q.Named == nil {
		return ""
	}
	return q.Named.Unit
}

// ratesOf returns the rates of a call with several checks, each under a name or a partition key of its own:
// several limits of the caller's own have the numbers of their checks, several keys of a limit their
// partition keys. A pair that is named twice is listed once.
func ratesOf(all []decide.Request, windowsSec []int64) []rate {
	own := 0 // or of that name
	for i := range all {
		if limit := all[i].Limit; limit == nil || string(limit) == ownName {
			own++
		}
	}
	listed, some := make([]rate, 0, len(all)), []rate(nil)
	type pair struct {
		name, key string
		own       bool // default:1 is a check, or a rule of the limit default
	}
	at, count := map[pair]int{}, map[string]int{} // count is by name
	for i := range all {
		q := &all[i]
		some = appendRates(some[:0], q, windowsSec[i])
		for _, r := range some {
			if q.Limit == nil && own > 1 {
				r.number = i + 1
			}
			of := pair{r.fullName(), string(q.Key), q.Limit == nil}
			switch j, again := at[of]; {
			case !again:
				at[of] = len(listed)
				listed = append(listed, r)
				count[of.name]++
			case r.denies || !listed[j].denies:
				listed[j] = r
			}
		}
	}
	for i := range listed {
		if r := &listed[i]; r.name != nil && count[r.fullName()] > 1 {
			r.partition = partitionOf(r.key)
		}
	}
	return listed
}

// partitionBytes of a key's SHA-256 are its partition key: it is short whatever the key, and tells no secret.
const partitionBytes = 16

// partitionOf returns a key's partition key as a parameter of structured fields.
func partitionOf(key []byte) string {
	sum := sha256.Sum256(key)
	return ";pk=:" + base64.StdEncoding.EncodeToString(sum[:partitionBytes]) + ":"
}

// windowOf returns a rule's window in seconds, that in which a full funnel drains, or 0 for none.
func windowOf(r *limiter.Rule) int64 {
	switch r.Kind {
	case limiter.Funnel:
		return drainSec(r.Funnel)
	case limiter.Quota:
		if c, ok := r.Shared.(*calendar.Calendar); ok {
			return quotaSec(c.Spec().Every)
		}
		return 0
	default:
		hi, ns := bits.Mul64(uint64(max(0, r.Terms().Numbers[1])), r.Unit.Ns())
		if hi > 0 || ns > math.MaxInt64 {
			return maxInteger
		}
		return funnel.WholeSeconds.Of(ns)
	}
}

func drainSec(l funnel.Limit) int64 { return funnel.WholeSeconds.Of(l.ToleranceNs()) }

// quotaSec returns the length of a quota's windows, or 0 if it varies.
func quotaSec(every calendar.Every) int64 {
	const day = 24 * time.Hour
	lengths := [...]time.Duration{
		calendar.Second: time.Second, calendar.Minute: time.Minute, calendar.Hour: time.Hour, calendar.Day: day, calendar.Week: 7 * day,
	}
	if int(every) < len(lengths) {
		return int64(lengths[every] / time.Second)
	}
	return 0
}

func (r *rate) fullName() string { return string(r.appendFullName(nil)) }

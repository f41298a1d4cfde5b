package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
)

// operate has an operation executed, and then the call answered.
func (x *Exchange) operate(o *decide.Operation, answer func() error) decide.Ask {
	x.then = func(*API, *Exchange) error {
		if err := failedOperation(o); err != nil {
			return err
		}
		return answer()
	}
	return o
}

func failedOperation(o *decide.Operation) error {
	if o.Err != nil {
		return failed(o.Err)
	}
	return nil
}

// said returns the words of a command for those who watch: text, keys and numbers.
func said(words ...any) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = fmt.Sprint(word)
	}
	return all
}

// reset is POST /v1/reset: {"limit", "key"} or {"key"}. A user who may not reset the key does not learn that
// its limit is unknown.
func (a *API) reset(x *Exchange, body *object) (decide.Ask, error) {
	key, of, limit := string(body.must("key")), body.has("limit"), string(body.text("limit"))
	if err := body.end(); err != nil {
		return nil, err
	}
	do := decide.Delete
	if of {
		key = limit + ":" + key // the name of a named limit's key
		if a.Limits.Lookup([]byte(limit)) == nil {
			do = decide.Admit
		}
	}
	o := &decide.Operation{Command: "del", Said: said("DEL", key), Key: []byte(key), Do: do}
	return x.operate(o, func() error {
		if do == decide.Admit {
			return a.noLimit(x, limit)
		}
		x.done(append(appendMember(x.body[:0], `{"deleted":`, o.Deleted), "}\n"...))
		return nil
	}), nil
}

// reserve is POST /v1/reserve.
func (a *API) reserve(x *Exchange, body *object) (decide.Ask, error) {
	if body.has("checks") {
		return a.hold(x, body)
	}
	key := string(body.must("key"))
	f := a.readOwnFunnel(body)
	quantity, ttlMs := body.quantity(1), body.integer("ttl_ms")
	if err := body.end(); err != nil {
		return nil, err
	}
	var o limiter.Operation
	ttlNs, wrong := argument.Milliseconds("ttl_ms", ttlMs)
	if wrong == nil {
		o, wrong = argument.Reserve(f.limit, quantity, ttlNs, funnel.Milliseconds)
	}
	said := said("CL.RESERVE", key, f.maxBurst, f.count, f.periodSec, quantity, ttlMs)
	return x.apply("cl.reserve", key, said, &o, wrong, func() {
		x.granted(&o.Result, "id", strconv.FormatUint(o.ID, 10), rate{windowSec: drainSec(f.limit)})
	}), nil
}

// apply has an operation on a key executed, which has the answers. One that is wrong fails after the rights
// to it were checked, and is counted.
func (x *Exchange) apply(command, key string, said []string, o *limiter.Operation, wrong error, answer func()) decide.Ask {
	do := decide.Apply
	if wrong != nil {
		do = decide.Refuse
	}
	asked := &decide.Operation{Command: command, Said: said, Key: []byte(key), Do: do, Step: o, Refusal: wrong}
	return x.operate(asked, func() error {
		answer()
		return nil
	})
}

// ownFunnel is a funnel of the caller's own.
type ownFunnel struct {
	limit                      funnel.Limit
	maxBurst, count, periodSec int64 // as a command has it
}

// readOwnFunnel reads a funnel, also without its algorithm.
func (a *API) readOwnFunnel(body *object) (f ownFunnel) {
	if body.has("limit") {
		body.fail(body.at + "limit cannot be given here; reservations are of funnels, with max_burst or capacity, count and period")
	}
	if name := string(body.text("algorithm")); name != "" && name != namedlimit.Funnel.String() {
		body.fail(body.at + "algorithm must be funnel, or left out: reservations are of funnels")
	}
	var r namedlimit.Rule
	f.limit = a.readFunnel(body, &r)
	f.maxBurst, f.count, f.periodSec = r.MaxBurst(a.Reading), r.Count, r.PeriodSec
	return f
}

// acquire is POST /v1/acquire.
func (a *API) acquire(x *Exchange, body *object) (decide.Ask, error) {
	key, maxHolders, leaseMs := string(body.must("key")), body.integer("max"), body.integer("lease_ms")
	words := []any{"CL.CONCURRENCY", "ACQUIRE", key, maxHolders, leaseMs}
	var token []byte
	if body.has("token") {
		token = bytes.Clone(body.text("token"))
		words = append(words, string(token))
	}
	if err := body.end(); err != nil {
		return nil, err
	}
	var o limiter.Operation
	leaseNs, wrong := argument.Milliseconds("lease_ms", leaseMs)
	if wrong == nil {
		o, token, wrong = argument.Acquire(maxHolders, leaseNs, token, funnel.Milliseconds)
	}
	return x.apply("cl.concurrency|acquire", key, said(words...), &o, wrong, func() {
		x.granted(&o.Result, "token", string(token), rate{unit: "concurrent-requests"})
	}), nil
}

// granted answers with a result, and the text by which what is granted is known.
func (x *Exchange) granted(result *funnel.Result, name, id string, r rate) {
	r.result, r.denies = result, result.Limited
	x.rates = rates{items: append(x.rates.items, r), denied: result.Limited, worst: result}
	if result.Limited {
		x.deny(http.StatusTooManyRequests, nil)
		return
	}
	b := append(append(appendResult(append(x.body[:0], '{'), result, "ms"), `,"`...), name...)
	x.done(append(appendText(append(b, `":`...), id), "}\n"...))
}

func appendMember(b []byte, name string, value bool) []byte {
	return strconv.AppendBool(append(b, name...), value)
}

// commit is POST /v1/commit, with a funnel in late to have an expired reservation debited.
func (a *API) commit(x *Exchange, body *object) (decide.Ask, error) {
	if body.has("checks") {
		return a.settle(x, body)
	}
	key, id, quantity := string(body.must("key")), string(body.must("id")), body.quantity(0)
	words := []any{"CL.COMMIT", key, id, quantity}
	var late *funnel.Limit
	if v, ok := body.take("late"); ok {
		given := v.object
		if given == nil {
			return nil, bad("late must be an object with max_burst or capacity, count and period")
		}
		f := a.readOwnFunnel(given)
		if err := given.end(); err != nil {
			return nil, err
		}
		late, words = &f.limit, append(words, "LATE", f.maxBurst, f.count, f.periodSec)
	}
	if err := body.end(); err != nil {
		return nil, err
	}
	o, wrong := argument.Commit([]byte(id), quantity, late)
	return x.apply("cl.commit", key, said(words...), &o, wrong, func() { x.committed(o.Count > 0, o.Count > 1) }), nil
}

// committed answers whether there was what was to be committed, and whether its time was over.
func (x *Exchange) committed(was, late bool) {
	b := appendMember(x.body[:0], `{"committed":`, was)
	x.done(append(appendMember(b, `,"late":`, late), "}\n"...))
}

// release is POST /v1/release.
func (a *API) release(x *Exchange, body *object) (decide.Ask, error) {
	key, token := string(body.must("key")), string(body.must("token"))
	if err := body.end(); err != nil {
		return nil, err
	}
	o, wrong := argument.Release([]byte(token))
	return x.apply("cl.concurrency|release", key, said("CL.CONCURRENCY", "RELEASE", key, token), &o, wrong, func() {
		x.done(append(appendMember(x.body[:0], `{"released":`, o.Count > 0), "}\n"...))
	}), nil
}

package httpapi

import (
	"net/http"
	"strconv"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

// do has a command executed and returns its reply.
func (q *request) do(words ...string) (any, error) {
	call := make(peer.Call, len(words))
	for i, word := range words {
		call[i] = []byte(word)
	}
	answers, err := q.conn.Ask(q.Context(), q.user, call)
	switch {
	case err != nil:
		return nil, err
	case len(answers) != 1:
		return nil, errEnded
	case answers[0].Error != "":
		return nil, failed(&answers[0])
	}
	return readReply(answers[0].Reply)
}

// count is do for a reply that is an integer.
func (q *request) count(words ...string) (int64, error) {
	v, err := q.do(words...)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, errReply
	}
	return n, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// reset is POST /v1/reset: {"limit", "key"} or {"key"}.
func (a *api) reset(q *request, body *object) (answer, error) {
	key, of, limit := body.must("key"), body.has("limit"), body.text("limit")
	if err := body.end(); err != nil {
		return answer{}, err
	}
	if of {
		key = limit + ":" + key // the name of a named limit's key
		if a.Limits.Lookup([]byte(limit)) == nil {
			return answer{}, a.noReset(q, limit, key)
		}
	}
	n, err := q.count("DEL", key)
	if err != nil {
		return answer{}, err
	}
	return done([]byte(`{"deleted":` + strconv.FormatBool(n > 0) + "}\n")), nil
}

// noReset refuses to reset a key of an unknown limit. Only who might reset the key is told that.
func (a *api) noReset(q *request, limit, key string) error {
	refused, err := q.conn.Permits(q.Context(), q.user, peer.Call{[]byte("DEL"), []byte(key)})
	switch {
	case err != nil:
		return err
	case refused != nil:
		return failed(refused)
	}
	return a.noLimit(q, limit)
}

// reserve is POST /v1/reserve.
func (a *api) reserve(q *request, body *object) (answer, error) {
	key := body.must("key")
	burst, r, windowSec := a.readOwnFunnel(body)
	quantity, ttlMs := body.quantity(1), body.integer("ttl_ms")
	if err := body.end(); err != nil {
		return answer{}, err
	}
	return q.grant("id", rate{name: ownName, windowSec: windowSec},
		"CL.RESERVE", key, burst, decimal(r.Count), decimal(r.PeriodSec), decimal(quantity), decimal(ttlMs))
}

// readOwnFunnel reads a funnel, also without its algorithm, and returns its first argument in a command.
func (a *api) readOwnFunnel(body *object) (burst string, r namedlimit.Rule, windowSec int64) {
	if body.has("limit") {
		body.fail(body.at + "limit cannot be given here; reservations are of funnels, with max_burst or capacity, count and period")
	}
	if name := body.text("algorithm"); name != "" && name != namedlimit.Funnel.String() {
		body.fail(body.at + "algorithm must be funnel, or left out: reservations are of funnels")
	}
	windowSec = a.readFunnel(body, &r)
	return decimal(r.MaxBurst(a.Reading)), r, windowSec
}

// acquire is POST /v1/acquire.
func (a *api) acquire(q *request, body *object) (answer, error) {
	words := []string{"CL.CONCURRENCY", "ACQUIRE", body.must("key"), decimal(body.integer("max")), decimal(body.integer("lease_ms"))}
	if body.has("token") {
		words = append(words, body.text("token"))
	}
	if err := body.end(); err != nil {
		return answer{}, err
	}
	return q.grant("token", rate{name: ownName, unit: "concurrent-requests"}, words...)
}

// grant answers with a reply of five integers, and the text by which the grant is known.
func (q *request) grant(name string, r rate, words ...string) (answer, error) {
	v, err := q.do(words...)
	if err != nil {
		return answer{}, err
	}
	result, rest, ok := resultOf(v)
	if !ok || len(rest) != 1 {
		return answer{}, errReply
	}
	to := done(nil)
	r.result, r.denies = &result, result.Limited
	to.rates = rates{items: []rate{r}, denied: result.Limited, worst: &result}
	if result.Limited {
		to.deny(http.StatusTooManyRequests)
		to.body = append(to.body, "}\n"...)
		return to, nil
	}
	id, _ := rest[0].(string)
	b := append(append(appendResult([]byte{'{'}, &result), `,"`...), name...)
	to.body = append(appendText(append(b, `":`...), id), "}\n"...)
	return to, nil
}

// resultOf reads five integers, and returns what follows.
func resultOf(v any) (r funnel.Result, rest []any, ok bool) {
	all, _ := v.([]any)
	var n [5]int64
	if len(all) < len(n) {
		return r, nil, false
	}
	for i := range n {
		if n[i], ok = all[i].(int64); !ok {
			return r, nil, false
		}
	}
	return funnel.Result{Limited: n[0] != 0, Limit: n[1], Remaining: n[2], RetryAfter: n[3], ResetAfter: n[4]}, all[len(n):], true
}

// commit is POST /v1/commit, with a funnel in late to have an expired reservation debited.
func (a *api) commit(q *request, body *object) (answer, error) {
	words := []string{"CL.COMMIT", body.must("key"), body.must("id"), decimal(body.quantity(0))}
	if v, ok := body.take("late"); ok {
		late, ok := v.(*object)
		if !ok {
			return answer{}, bad("late must be an object with max_burst or capacity, count and period")
		}
		burst, r, _ := a.readOwnFunnel(late)
		if err := late.end(); err != nil {
			return answer{}, err
		}
		words = append(words, "LATE", burst, decimal(r.Count), decimal(r.PeriodSec))
	}
	if err := body.end(); err != nil {
		return answer{}, err
	}
	n, err := q.count(words...)
	if err != nil {
		return answer{}, err
	}
	return done([]byte(`{"committed":` + strconv.FormatBool(n > 0) + `,"late":` + strconv.FormatBool(n > 1) + "}\n")), nil
}

// release is POST /v1/release.
func (a *api) release(q *request, body *object) (answer, error) {
	key, token := body.must("key"), body.must("token")
	if err := body.end(); err != nil {
		return answer{}, err
	}
	n, err := q.count("CL.CONCURRENCY", "RELEASE", key, token)
	if err != nil {
		return answer{}, err
	}
	return done([]byte(`{"released":` + strconv.FormatBool(n > 0) + "}\n")), nil
}

var errReply = failed(&reply.Answer{Error: "ERR the store failed: an unexpected reply"})

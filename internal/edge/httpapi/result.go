package httpapi

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/funnel"
)

// appendResult appends the members of a decision, with times in the unit of their names.
func appendResult(b []byte, r *funnel.Result, unit string) []byte {
	b = append(b, `"allowed":`...)
	b = strconv.AppendBool(b, !r.Limited)
	b = strconv.AppendInt(append(b, `,"limit":`...), r.Limit, 10)
	b = strconv.AppendInt(append(b, `,"remaining":`...), r.Remaining, 10)
	b = append(append(append(b, `,"retry_after_`...), unit...), `":`...)
	b = append(strconv.AppendInt(b, r.RetryAfter, 10), `,"reset_after_`...)
	return strconv.AppendInt(append(append(b, unit...), `":`...), r.ResetAfter, 10)
}

// appendDecision appends the members of a request's decision.
func appendDecision(b []byte, q *decide.Request) []byte {
	b = appendTaken(appendResult(b, &q.Result, "ms"), q)
	if isNear(q) {
		b = append(b, `,"near":true`...)
	}
	return b
}

// isNear reports whether a request is allowed and its key near the limit.
func isNear(q *decide.Request) bool { return q.Named != nil && q.Named.IsNear(&q.Result) }

// noteNear notes the name of a limit whose key is near it.
func (x *Exchange) noteNear(q *decide.Request) {
	if isNear(q) && !slices.ContainsFunc(x.rates.near, func(name []byte) bool { return bytes.Equal(name, q.Limit) }) {
		x.rates.near = append(x.rates.near, q.Limit)
	}
}

// appendTaken appends the units taken by a request for at most some, behind other members.
func appendTaken(b []byte, q *decide.Request) []byte {
	if !isAtMost(q) {
		return b
	}
	return strconv.AppendInt(append(b, `,"taken":`...), q.Taken, 10)
}

// denialHead begins the problem detail of a denial.
const denialHead = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
	`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":`

// done answers what was done. The body is kept.
func (x *Exchange) done(body []byte) {
	x.body = body
	x.Answer = Answer{Status: http.StatusOK, Body: body, Outcome: door.Allowed}
}

// deny answers a denial, whose problem detail has further members at its end.
func (x *Exchange) deny(status int, more []byte) {
	worst := x.rates.worst
	b := strconv.AppendInt(append(x.body[:0], denialHead...), int64(status), 10)
	b = x.rates.appendDetail(append(b, `,"detail":`...))
	b = append(b, `,"violated-policies":[`...)
	from := len(b)
	for i := range x.rates.items {
		if r := &x.rates.items[i]; r.denies {
			x.values = r.appendFullName(x.values[:0])
			b = appendOnce(b, from, x.values)
		}
	}
	b = append(appendResult(append(b, "],"...), worst, "ms"), more...)
	x.done(append(b, "}\n"...))
	x.Answer.Status, x.Answer.problem, x.Answer.Outcome = status, true, door.Limited
}

// appendDetail appends what a denial means, as a JSON string.
func (of *rates) appendDetail(b []byte) []byte {
	worst := of.worst
	switch {
	case of.whose != nil:
		return appendText(b, of.detailOf(of.whose))
	case of.unit == namedlimit.USD && worst.Limit > 0:
		b = append(of.appendWhen(append(b, '"')), "; "+leftOf(worst, of.unit)+` is left"`...)
		return b
	default:
		return append(of.appendWhen(append(b, '"')), '"')
	}
}

// detailOf tells of a denial by which limit it is, and whose key was denied.
func (of *rates) detailOf(q *decide.Request) string {
	limit, key := quote(string(q.Limit)), quote(string(q.Key))
	if of.worst.Limit == 0 {
		return "the limit " + limit + " allows nothing for " + key
	}
	units := " units"
	if of.unit == namedlimit.USD {
		units = ""
	}
	return "the limit " + limit + " has " + leftOf(of.worst, of.unit) + units + " left for " + key + "; " + string(of.appendWhen(nil))
}

// leftOf returns what remains of a limit.
func leftOf(r *funnel.Result, unit string) string {
	left := max(0, r.Remaining)
	if unit == namedlimit.USD {
		return namedlimit.Dollars(left) + " of " + namedlimit.Dollars(r.Limit)
	}
	return strconv.FormatInt(left, 10) + " of " + strconv.FormatInt(r.Limit, 10)
}

// appendWhen appends when what is denied may be tried again.
func (of *rates) appendWhen(b []byte) []byte {
	switch worst := of.worst; {
	case worst.RetryAfter >= 0:
		return append(strconv.AppendInt(append(b, "try again in "...), secondsOf(worst.RetryAfter), 10), " s"...)
	case worst.Limit == 0:
		return append(b, "nothing is ever allowed"...)
	case of.unit == namedlimit.USD:
		return append(b, "this much is never allowed at once"...)
	default:
		return append(b, "this many are never allowed at once"...)
	}
}

// appendOnce appends a text to a list of JSON strings that begins at from, unless it is there, as when two
// keys of a policy are denied.
func appendOnce(b []byte, from int, text []byte) []byte {
	end := len(b)
	if end > from {
		b = append(b, ',')
	}
	begin := len(b)
	b = appendText(b, text)
	if bytes.Contains(b[from:end], b[begin:]) {
		return b[:end]
	}
	return b
}

var errEnded = &refusal{status: http.StatusServiceUnavailable, detail: "the request was ended before it was answered", close: true}

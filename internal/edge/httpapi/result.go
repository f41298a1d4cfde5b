package httpapi

import (
	"bytes"
	"net/http"
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
	return appendTaken(appendResult(b, &q.Result, "ms"), q)
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
	b = append(b, `,"detail":"`...)
	switch {
	case worst.RetryAfter >= 0:
		b = append(strconv.AppendInt(append(b, "try again in "...), secondsOf(worst.RetryAfter), 10), " s"...)
	case worst.Limit == 0:
		b = append(b, "nothing is ever allowed"...)
	case x.rates.unit == namedlimit.USD:
		b = append(b, "this much is never allowed at once"...)
	default:
		b = append(b, "this many are never allowed at once"...)
	}
	if x.rates.unit == namedlimit.USD && worst.Limit > 0 {
		b = append(b, "; "+namedlimit.Dollars(max(0, worst.Remaining))+" of "+namedlimit.Dollars(worst.Limit)+" is left"...)
	}
	b = append(b, `","violated-policies":[`...)
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

package httpapi

import (
	"net/http"
	"slices"
	"strconv"

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

const (
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
)

// deny makes the answer a denial, whose problem detail has further members at its end.
func (to *answer) deny(status int, more []byte) {
	worst := to.rates.worst
	detail := "this many are never allowed at once"
	switch {
	case worst.RetryAfter >= 0:
		detail = "try again in " + strconv.FormatInt(secondsOf(worst.RetryAfter), 10) + " s"
	case worst.Limit == 0:
		detail = "nothing is ever allowed"
	}
	b := appendProblem(make([]byte, 0, 512), quotaExceeded, quotaTitle, status, detail)
	b = append(b, `,"violated-policies":[`...)
	var names []string
	for i := range to.rates.items {
		if r := &to.rates.items[i]; r.denies && !slices.Contains(names, r.fullName()) { // else another key of it does
			if names = append(names, r.fullName()); len(names) > 1 {
				b = append(b, ',')
			}
			b = appendText(b, r.fullName())
		}
	}
	b = append(appendResult(append(b, "],"...), worst, "ms"), more...)
	b = append(b, "}\n"...)
	to.body = b
	to.status, to.problem, to.outcome, to.retryMs = status, true, door.Limited, worst.RetryAfter
}

var errEnded = &refusal{status: http.StatusServiceUnavailable, detail: "the request was ended before it was answered", close: true}

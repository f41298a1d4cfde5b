package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"cellserver/internal/edge/door"
	"cellserver/internal/redis/reply"
)

// refusal is why a request is not answered, with its status.
type refusal struct {
	status int
	detail string
	allow  string // methods
	close  bool   // the connection
}

func (e *refusal) Error() string { return e.detail }

// bad refuses a request for its content.
func bad(detail string) error { return &refusal{status: http.StatusBadRequest, detail: detail} }

// Errors for Fail:
var (
	ErrLongBody error = &refusal{status: http.StatusRequestEntityTooLarge, detail: "the body is longer than " + strconv.Itoa(MaxBodyBytes) + " bytes", close: true}
	ErrBody     error = &refusal{status: http.StatusBadRequest, detail: "the body did not arrive as announced", close: true}
)

var errNoPath = &refusal{status: http.StatusNotFound, detail: "no such path; /v1/openapi.json lists them"}

const needsToken = "send a token in X-Cellserver-Token or in the path, /t/TOKEN/v1/..., or use a client certificate; see --http-tokens-file"

// refuse answers with an error, as a problem detail.
func (x *Exchange) refuse(err error) {
	e := (*refusal)(nil)
	if refused := (*door.RefusedError)(nil); errors.As(err, &refused) {
		e = &refusal{status: http.StatusForbidden, detail: refused.Error()}
	} else if errors.Is(err, door.ErrToken) {
		e = &refusal{status: http.StatusUnauthorized, detail: err.Error()}
	} else if errors.Is(err, door.ErrFull) {
		e = &refusal{status: http.StatusServiceUnavailable, detail: err.Error(), close: true}
	} else if !errors.As(err, &e) { // the connection or the request has ended
		e = errEnded
	}
	b := append(append(x.body[:0], `{"type":"about:blank","title":"`...), http.StatusText(e.status)...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(e.status), 10)
	x.body = append(appendText(append(b, `,"detail":`...), e.detail), "}\n"...)
	x.Answer = Answer{
		Status: e.status, Body: x.body, Close: e.close, Outcome: door.Refused,
		problem: true, allow: e.allow, login: e.status == http.StatusUnauthorized,
	}
	if e.status == http.StatusServiceUnavailable {
		x.Answer.Outcome = door.Failed
	}
}

// failed turns an error reply into a refusal.
func failed(because error) error {
	err, _ := because.(reply.Error) //nolint:errorlint // it is never wrapped
	text := string(err)
	for _, prefix := range []string{"ERR ", "Cell error: Store error: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	e := &refusal{status: statusOf(err), detail: text}
	if e.status == http.StatusUnauthorized {
		e.detail = needsToken
	}
	return e
}

// statusOf returns the status for an error reply. Codes of a remote store stand for its failures.
func statusOf(err reply.Error) int {
	switch err.Code() {
	case "NOAUTH":
		return http.StatusUnauthorized
	case "NOPERM":
		return http.StatusForbidden
	case "ERR":
		if err.IsTooManyNewKeys() || err == reply.ErrEnded || err == reply.ErrContended || strings.HasPrefix(string(err), "ERR the store failed") {
			return http.StatusServiceUnavailable
		}
		return http.StatusBadRequest
	case "Cell", "WRONGTYPE", "CROSSSLOT":
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}

const maxListed = 20 // limits in a refusal

// noLimit refuses an unknown limit. Only operators are told the names of others'.
func (a *API) noLimit(x *Exchange, name string) error {
	if !x.Client.IsOperator(x.User) {
		return &refusal{status: http.StatusNotFound, detail: "no such limit " + quote(name)}
	}
	all := a.Limits.All()
	names := make([]string, 0, maxListed)
	for _, l := range all[:min(len(all), maxListed)] {
		names = append(names, l.Name)
	}
	there := cmp.Or(strings.Join(names, ", "), "none; define it by CL.LIMIT SET or in --limits-file")
	if len(all) > maxListed {
		there += " and " + strconv.Itoa(len(all)-maxListed) + " more"
	}
	return &refusal{status: http.StatusNotFound, detail: "no such limit " + quote(name) + "; there are " + there}
}

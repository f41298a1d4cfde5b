package squares

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
)

// settled is the answer to a commit.
type settled struct{ Committed, Late bool }

// isNear is what an answer by HTTP says.
func (d *decision) isNear() bool { return !d.limited && (d.near || d.denied) }

// hold asks about holds by HTTP.
func (a *api) hold(t *testing.T, all []question) (answers []answer) {
	t.Helper()
	for i := range all {
		q := &all[i]
		in := map[string]any{}
		if q.kind != "reserve" || q.hold.given {
			in["id"] = q.hold.id
		}
		if q.kind != "commit" {
			in["ttl_ms"] = q.hold.ttlNs / 1_000_000
		}
		if q.kind == "reserve" && q.hold.charge {
			in["charge"] = true
		}
		var checks []any
		for _, c := range q.calls {
			check := map[string]any{"limit": c.name, "key": c.key}
			if q.kind != "extend" {
				check["units"] = c.units
			}
			checks = append(checks, check)
		}
		in["checks"] = checks
		text, _ := json.Marshal(in)
		status, b := a.send(t, http.MethodPost, "/v1/"+q.kind, string(text))
		answers = append(answers, q.heldInJSON(status, &b))
	}
	return answers
}

// heldInJSON reads an answer about a hold.
func (q *question) heldInJSON(status int, b *body) (a answer) {
	if status != http.StatusOK && status != http.StatusTooManyRequests {
		return answer{failed: true, text: strconv.Itoa(status)}
	}
	n := int64(0)
	switch q.kind {
	case "reserve":
		a.head, a.id = status != http.StatusOK, b.ID
		for i := range b.Checks {
			a.rows, a.nears = append(a.rows, b.Checks[i].row()), append(a.nears, b.Checks[i].Near)
		}
		return a
	case "commit":
		if b.Committed {
			n = 1
		}
		if b.Late {
			n = 2
		}
	default:
		if b.Extended {
			n = 1
		}
	}
	a.rows = []row{{limit: n}}
	return a
}

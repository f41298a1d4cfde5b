package actions

import (
	"fmt"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// readAction reads an action from the form, or returns what is wrong with it.
func (q *request) readAction() (a action, problem string) {
	a = action{name: q.form.Get("action"), limit: q.form.Get("limit")}
	if a.limit != "" && q.config.Limit([]byte(a.limit)) == nil {
		return a, q.t.LimitUnknown
	}
	if problem = q.readKey(&a); problem != "" {
		return a, problem
	}
	switch {
	case a.name == Reset && a.key != nil:
		a.words = command("CL.RESET", a.joined())
	case a.name == Refund && a.key != nil:
		return a, q.readRefund(&a)
	case a.name == Override && a.limit != "" && a.key != nil:
		return a, q.readOverride(&a)
	case a.name == EndOverride && a.limit != "" && a.key != nil:
		a.words = command("CL.LIMIT", "OVERRIDE", a.limit, string(a.key), "DEL")
	case (a.name == Shadow || a.name == EndShadow) && a.limit != "":
		a.key = nil
		q.setShadow(&a)
	default:
		return a, q.t.ActNone
	}
	return a, ""
}

func command(all ...string) [][]byte {
	list := make([][]byte, len(all))
	for i, word := range all {
		list[i] = []byte(word)
	}
	return list
}

// joined returns the key with its limit's name.
func (a *action) joined() string {
	if a.limit == "" {
		return string(a.key)
	}
	return a.limit + ":" + string(a.key) // as CL.CHECK does
}

// readKey reads the key, if there is one, and its database.
func (q *request) readKey(a *action) (problem string) {
	if !q.form.Has("key") {
		return ""
	}
	key, ok := resp.Unquote(q.form.Get("key"))
	switch {
	case !ok:
		return q.t.KeyQuotes
	case q.form.Get("key") == "":
		return q.t.KeyMissing
	}
	a.key = append([]byte{}, key...) // not nil
	if excess := len(a.joined()) - q.config.MaxKeyBytes; excess > 0 {
		return fmt.Sprintf(q.t.KeyTooLong, len(key)-excess)
	}
	if given := q.form.Get("db"); given != "" && (a.name == Reset || a.name == Refund) {
		db, err := strconv.ParseUint(given, 10, 16)
		if err != nil || int(db) >= q.config.Databases {
			return fmt.Sprintf(q.t.DatabaseTooLarge, q.config.Databases-1)
		}
		a.db = uint16(db)
	}
	return ""
}

// readRefund reads the units and, without a named limit, the limit as in links: a kind and its numbers.
func (q *request) readRefund(a *action) (problem string) {
	var err error
	if a.units, err = strconv.ParseInt(strings.TrimSpace(q.form.Get("units")), 10, 64); err != nil || a.units < 1 {
		return q.t.UnitsWrong
	}
	units, key := strconv.FormatInt(a.units, 10), string(a.key)
	if a.limit != "" {
		a.words = command("CL.CHECK", a.limit, key, "-"+units)
		return ""
	}
	of := strings.Fields(q.form.Get("of"))
	if len(of) == 0 {
		return q.t.ActNone
	}
	kind, ok := limiter.KindOf(of[0])
	row := kind.Row()
	if !ok || len(of)-1 != len(row.Arguments()) || !Refunds(kind) {
		return q.t.ActNone
	}
	for _, n := range of[1:] {
		if _, err := strconv.ParseInt(n, 10, 64); err != nil {
			return q.t.ActNone
		}
	}
	all := append([]string{strings.ToUpper(row.Command), key}, of[1:]...)
	if kind == limiter.Funnel {
		all[0] = "CL.REFUND"
		all = append(all, units)
	} else {
		all = append(all, "-"+units)
	}
	if row.Option != "" {
		all = append(all, strings.ToUpper(row.Option))
	}
	a.words = command(all...)
	return ""
}

// Refunds reports whether units of a key of this kind can be refunded by its limit's numbers.
func Refunds(kind limiter.Kind) bool {
	switch kind {
	case limiter.Funnel, limiter.FixedWindow, limiter.SlidingWindow, limiter.ApproxWindow:
		return true
	default:
		return false
	}
}

// readOverride reads a policy as CL.LIMIT OVERRIDE takes it, and for how many seconds it holds.
func (q *request) readOverride(a *action) (problem string) {
	policy := strings.Fields(q.form.Get("policy"))
	_, rest, err := namedlimit.ReadPolicy(policy, q.config.Reading)
	switch {
	case err != nil:
		return resp.ErrorLine(err.Error())
	case len(rest) > 0:
		return fmt.Sprintf(q.t.PolicyRest, resp.Quote([]byte(strings.Join(rest, " "))))
	}
	all := append([]string{"CL.LIMIT", "OVERRIDE", a.limit, string(a.key)}, policy...)
	if given := strings.TrimSpace(q.form.Get("seconds")); given != "" {
		sec, err := strconv.ParseInt(given, 10, 64)
		if err != nil || sec < 1 {
			return q.t.SecondsWrong
		}
		all = append(all, "EX", strconv.FormatInt(sec, 10))
	}
	a.words = command(all...)
	return ""
}

// setShadow sets the command that changes nothing but the shadow: it fails if the rules have changed
// meanwhile.
func (q *request) setShadow(a *action) {
	all := []string{"CL.LIMIT", "SET", a.limit}
	if l := q.config.Limit([]byte(a.limit)); l != nil {
		for i := range l.Rules {
			all = append(all, l.Rules[i].Words(q.config.Reading)...)
		}
	}
	if a.name == Shadow {
		all = append(all, "SHADOW")
	}
	a.words = command(append(all, "SAMERULES")...)
}

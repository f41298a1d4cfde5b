package actions

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
)

// Names of actions in forms and in the log:
const (
	Reset       = "reset"
	Refund      = "refund"
	Override    = "override"
	EndOverride = "end-override"
	Shadow      = "shadow"
	EndShadow   = "end-shadow"
)

// action is what a user asks for.
type action struct {
	name  string
	key   []byte // without a limit's name; nil if all of a limit is meant
	db    uint16
	limit string // a named one; empty for none
	units int64
	words []string // the command
}

// act asks for a confirmation or, with one, executes the action.
func (q *request) act() {
	nowNs, token := q.config.Now(), tokenOf(q.r)
	user := q.sessions.use(token, nowNs)
	if user == nil {
		q.answer(http.StatusUnauthorized, answer{Error: q.t.SignInEnded, problem: problemSignedIn})
		return
	}
	if !q.form.Has("confirm") {
		a, problem := q.readAction()
		if problem != "" {
			q.answer(http.StatusBadRequest, answer{Error: problem})
			return
		}
		asked := q.question(&a, user)
		asked.Token = q.sessions.ask(token, a, nowNs)
		q.answer(http.StatusOK, answer{Ask: asked})
		return
	}
	a, ok := q.sessions.confirmed(token, q.form.Get("confirm"), nowNs)
	switch {
	case q.form.Has("cancel"):
		q.answer(http.StatusOK, answer{})
	case !ok:
		q.answer(http.StatusConflict, answer{Error: q.t.NotConfirmed})
	default:
		q.execute(&a, user)
	}
}

func (q *request) execute(a *action, user *acl.User) {
	select {
	case q.running <- struct{}{}:
		defer func() { <-q.running }()
	default:
		q.answer(http.StatusServiceUnavailable, answer{Error: q.t.ActBusy})
		return
	}
	calls := [][]string{a.words}
	if a.db > 0 {
		calls = [][]string{{"SELECT", strconv.Itoa(int(a.db))}, a.words}
	}
	reply, err := q.run(q.peer, user, calls...)
	switch problem := failure(reply); {
	case err != nil:
		q.audit(a, user, "unknown")
		q.answer(http.StatusGatewayTimeout, answer{Error: q.t.ActUnknown})
	case problem != "":
		q.audit(a, user, problem)
		q.answer(http.StatusConflict, answer{Error: problem})
	default:
		q.audit(a, user, "ok")
		q.answer(http.StatusOK, answer{Done: q.done(a, integers(reply))})
	}
}

// audit logs an action with its result, which is an error's text if it failed.
func (q *request) audit(a *action, user *acl.User, result string) {
	attributes := []any{"action", a.name, "user", user.Name(), "client", q.peer.Addr}
	if a.key != nil {
		attributes = append(attributes, "key", resp.Quote(a.key), "db", a.db)
	}
	if a.limit != "" {
		attributes = append(attributes, "limit", a.limit)
	}
	if a.units > 0 {
		attributes = append(attributes, "units", a.units)
	}
	attributes = append(attributes, "command", commandText(a.words), "result", result)
	q.config.Log.Info(logged, attributes...)
}

func commandText(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = resp.QuoteWord([]byte(word))
	}
	return strings.Join(quoted, " ")
}

// question tells what an action will do.
func (q *request) question(a *action, user *acl.User) *Question {
	key := resp.Quote([]byte(a.joined()))
	what := map[string][2]string{ // the title, and the button
		Reset:       {fmt.Sprintf(q.t.AskReset, key), q.t.ActReset},
		Refund:      {fmt.Sprintf(q.byUnit(a, q.t.AskRefund, q.t.AskRefundMoney), q.amount(a, a.units), key), q.t.ActRefund},
		Override:    {fmt.Sprintf(q.t.AskOverride, key), q.t.ActOverride},
		EndOverride: {fmt.Sprintf(q.t.AskEndOverride, key), q.t.ActEndOverride},
		Shadow:      {fmt.Sprintf(q.t.AskShadow, a.limit), q.t.ActShadow},
		EndShadow:   {fmt.Sprintf(q.t.AskEndShadow, a.limit), q.t.ActEndShadow},
	}[a.name]
	asked := &Question{Title: what[0], Yes: what[1], No: q.t.ActCancel, Command: commandText(a.words)}
	asked.Entries = append(asked.Entries, [2]string{q.t.ActUser, user.Name()})
	if a.db > 0 {
		asked.Entries = append(asked.Entries, [2]string{q.t.Database, strconv.Itoa(int(a.db))})
	}
	return asked
}

// done tells what an action has done, by the integers of its reply.
func (q *request) done(a *action, reply []int64) string {
	key := resp.Quote([]byte(a.joined()))
	nothing := len(reply) == 1 && reply[0] == 0
	switch a.name {
	case Reset:
		if nothing {
			return fmt.Sprintf(q.t.ResetNothing, key)
		}
		return fmt.Sprintf(q.t.ResetDone, key)
	case Refund:
		remaining, limit := "?", "?"
		if len(reply) == 5 { // as CL.THROTTLE replies
			if reply[1] == 0 || reply[1] == math.MaxInt64 { // DENY or UNLIMITED
				return fmt.Sprintf(q.t.RefundNothing, key)
			}
			limit, remaining = q.amount(a, reply[1]), q.amount(a, reply[2])
		}
		return fmt.Sprintf(q.byUnit(a, q.t.RefundDone, q.t.RefundedMoney), key, remaining, limit)
	case Override:
		return fmt.Sprintf(q.t.OverrideDone, key)
	case EndOverride:
		if nothing {
			return fmt.Sprintf(q.t.EndOverrideNothing, key)
		}
		return fmt.Sprintf(q.t.EndOverrideDone, key)
	case Shadow:
		return fmt.Sprintf(q.t.ShadowDone, a.limit)
	}
	return fmt.Sprintf(q.t.EndShadowDone, a.limit)
}

// isMoney reports whether the units of an action's limit are money.
func (q *request) isMoney(a *action) bool {
	if a.limit == "" {
		return false
	}
	l := q.config.Limit([]byte(a.limit))
	return l != nil && l.Unit == namedlimit.USD
}

// byUnit returns the text for units, or the one for money.
func (q *request) byUnit(a *action, units, money string) string {
	if q.isMoney(a) {
		return money
	}
	return units
}

// amount tells units of an action's limit.
func (q *request) amount(a *action, n int64) string {
	if q.isMoney(a) {
		return namedlimit.Dollars(n)
	}
	return strconv.FormatInt(n, 10)
}

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
		a.words = []string{"CL.RESET", a.joined()}
	case a.name == Refund && a.key != nil:
		return a, q.readRefund(&a)
	case a.name == Override && a.limit != "" && a.key != nil:
		return a, q.readOverride(&a)
	case a.name == EndOverride && a.limit != "" && a.key != nil:
		a.words = []string{"CL.LIMIT", "OVERRIDE", a.limit, string(a.key), "DEL"}
	case (a.name == Shadow || a.name == EndShadow) && a.limit != "":
		a.key = nil
		q.setShadow(&a)
	default:
		return a, q.t.ActNone
	}
	return a, ""
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
		a.words = []string{"CL.CHECK", a.limit, key, "-" + units}
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
	a.words = all
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
	a.words = all
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
	all = append(all, "SAMERULES")
	a.words = all
}

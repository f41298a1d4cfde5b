package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// question is what the address asks about: a key, or a named limit as a whole.
type question struct {
	text    string // as entered
	problem string // why there is no answer; empty for none

	key   *keyAnswer
	limit *namedlimit.Limit // if no key is asked for
}

func (q *question) isOpen() bool { return q.key != nil || q.limit != nil || q.problem != "" }

// found is a key with its state.
type found struct {
	store.Key
	state  limiter.State
	known  bool
	others []uint16 // further databases that have the key
}

// ask reads the question of an address: key, and optionally db, limit and by, or limit alone. What it does
// not say is taken from the key's state and its last call.
func (v *view) ask() (q question) {
	query, t := v.query, v.t
	q.text = query.Get("key")
	limitName := strings.TrimSpace(query.Get("limit"))
	if !query.Has("key") {
		if limitName == "" {
			return q
		}
		if q.limit = v.page.limitOf(limitName); q.limit == nil {
			q.problem = t.LimitUnknown
		}
		return q
	}
	text, by := q.text, query.Get("by")
	if c, ok := readCall(text); ok {
		text, by, limitName = resp.Quote([]byte(c.key)), c.by, cmp.Or(c.limit, limitName)
	}
	key, problem := v.page.readKey(t, text)
	if problem != "" {
		q.problem = problem
		return q
	}
	q.text = keyText(key) // an input would change binary bytes when submitted again
	var err error
	switch f := (found{Key: store.Key{Name: key}}); {
	case v.page.source.State == nil:
		q.problem = t.NoState
	case limitName != "":
		q.key, err = v.askNamed(&f, limitName)
	default:
		if err = v.find(&f); err != nil {
			break
		}
		if limit := v.page.limitOf(string(key)); !f.known && limit != nil {
			q.limit = limit
			return q
		}
		q.key, err = v.askKey(&f, by)
	}
	if err != nil {
		q.problem = problemText(t, err)
	}
	return q
}

// call is a call as clients write it, such as cl.throttle user:1 15 30 60.
type call struct {
	key   string
	limit string // a named one; empty for none
	by    string // the rest, as in links
}

func readCall(text string) (c call, ok bool) {
	words, _ := resp.SplitInline([]byte(text), nil)
	given := make([]string, len(words))
	for i, word := range words {
		given[i] = string(word)
	}
	has := func(command string, most int) bool { return len(given) > most && strings.EqualFold(given[0], command) }
	if named := limiter.Named.Row(); has(named.Command, 2) {
		return call{key: given[2], limit: given[1]}, true
	}
	if pail := limiter.Bucket.Row(); has(pail.Command, 3) && strings.EqualFold(given[1], pail.Sub) {
		return call{key: given[2], by: kindName(limiter.Bucket) + " " + given[3]}, true
	}
	if has("cl.concurrency", 4) && strings.EqualFold(given[1], "acquire") {
		return call{key: given[2], by: kindName(limiter.Concurrency) + " " + given[3]}, true
	}
	if len(given) > 4 {
		if by := funnelTerms(given[0]); by != "" {
			return call{key: given[1], by: strings.Join(append([]string{by}, given[2:5]...), " ")}, true
		}
	}
	for kind := range limiter.Kinds {
		row := kind.Row()
		n := len(row.Arguments())
		if row.Option != "" || row.Sub != "" || n == 0 || !has(row.Command, n+1) {
			continue
		}
		name, rest := given[1], given[2:]
		if !row.Calendar {
			rest = rest[:n]
		}
		if kind == limiter.SlidingWindow && slices.ContainsFunc(given, func(s string) bool { return strings.EqualFold(s, "approx") }) {
			kind = limiter.ApproxWindow
		}
		return call{key: name, by: strings.Join(append([]string{kindName(kind)}, rest...), " ")}, true
	}
	return c, false
}

// funnelTerms returns the name that the limit of a command on funnels has in links; empty for other commands.
func funnelTerms(command string) string {
	switch strings.ToLower(command) {
	case "cl.tokenbucket":
		return byCapacity
	case "cl.pthrottle":
		return byMilliseconds
	case "rl.throttle", "cl.peek", "cl.debit", "cl.refund", "cl.reserve", "cl.bthrottle":
		return kindName(limiter.Funnel)
	}
	return ""
}

// kindName returns a kind's name in links.
func kindName(kind limiter.Kind) string {
	row := kind.Row()
	return cmp.Or(row.Short, row.Name)
}

// find sets the database, unless the address has it, to the first that has the key.
func (v *view) find(f *found) (err error) {
	p, nowNs := v.page, v.page.source.Now()
	if given := strings.TrimSpace(v.query.Get("db")); given != "" || p.source.Remote != nil {
		db, err := strconv.ParseUint(cmp.Or(given, "0"), 10, 16)
		if err != nil || int(db) >= p.source.Databases {
			return fmt.Errorf(v.t.DatabaseTooLarge, p.source.Databases-1)
		}
		f.DB = uint16(db)
		f.state, f.known, err = p.source.State(nowNs, f.Key)
		return err
	}
	for db := range min(p.source.Databases, maxDatabases) {
		key := store.Key{DB: uint16(db), Name: f.Name}
		state, known, err := p.source.State(nowNs, key)
		switch {
		case err != nil:
			return err
		case !known:
		case f.known:
			f.others = append(f.others, key.DB)
		default:
			f.Key, f.state, f.known = key, state, true
		}
	}
	return nil
}

// maxDatabases bounds the databases that are searched for a key.
const maxDatabases = 1024

// limitOf returns a named limit, or nil.
func (p *Page) limitOf(name string) *namedlimit.Limit {
	if p.source.Limits == nil {
		return nil
	}
	all := p.source.Limits()
	i, found := slices.BinarySearchFunc(all, name, func(l *namedlimit.Limit, name string) int { return cmp.Compare(l.Name, name) })
	if !found {
		return nil
	}
	return all[i]
}

// errLimitUnknown reports that there is no limit of a name.
var errLimitUnknown = errors.New("no such limit")

// askNamed answers about a key of CL.CHECK, given without the limit's name.
func (v *view) askNamed(f *found, name string) (*keyAnswer, error) {
	limit := v.page.limitOf(name)
	if limit == nil {
		return nil, errLimitUnknown
	}
	key := f.Name
	f.Name = append([]byte(limit.Name+":"), key...) // as CL.CHECK does
	if most := v.page.source.MaxKeyBytes; len(f.Name) > most {
		return nil, fmt.Errorf(v.t.KeyTooLong, most-len(limit.Name)-1)
	}
	if err := v.find(f); err != nil {
		return nil, err
	}
	return v.lookNamed(f, limit, key)
}

// askKey answers about any key by its state and, as a state has no limit, by the given terms or those of its
// last call.
func (v *view) askKey(f *found, by string) (*keyAnswer, error) {
	seen := v.lastSeen(f.Key)
	if f.known && f.state.Kind == limiter.Named || !f.known && (seen.Kind == limiter.Named || by == "" && seen.Numbers[0] == 0) {
		name, key, joined := strings.Cut(string(f.Name), ":") // no limit's name has a colon
		if limit := v.page.limitOf(name); joined && limit != nil {
			return v.lookNamed(f, limit, []byte(key))
		}
	}
	if f.known && f.state.Kind == limiter.Value {
		return v.lookAtValue(f), nil
	}
	switch places := placesOf(by, seen); {
	case places <= 0:
	case !f.known || f.state.Kind == limiter.Concurrency:
		a := v.lookAtPlaces(f, places)
		a.isGiven = by != ""
		return a, nil
	case by != "":
		return nil, limiter.ErrWrongType
	}
	spec, isGiven, err := v.page.readTerms(by)
	if err != nil {
		return nil, err
	}
	if !isGiven {
		if seen.Numbers[0] == 0 {
			return v.lookWithoutLimit(f), nil
		}
		spec = specOf(seen)
	}
	if f.known && !sameKind(f.state.Kind, spec.Kind) {
		if isGiven {
			return nil, limiter.ErrWrongType
		}
		return v.lookWithoutLimit(f), nil
	}
	a, err := v.lookBy(f, spec)
	if err != nil {
		return nil, err
	}
	a.isGiven = isGiven
	if spec.Calendar != nil {
		a.by = by // with the window
	}
	return a, nil
}

// sameKind reports whether requests of a kind are decided on a state.
func sameKind(state, of limiter.Kind) bool {
	return state == of || state == limiter.Reserving && of == limiter.Funnel
}

// lastSeen returns the terms of a key's last counted call, if it is one of the hottest.
func (v *view) lastSeen(key store.Key) limiter.Terms {
	for i := range v.hot {
		if k := &v.hot[i]; k.DB == key.DB && !k.Cut && k.Name == string(key.Name) {
			return k.Terms
		}
	}
	return limiter.Terms{}
}

// placesOf returns the places of CL.CONCURRENCY by the address or the key's last call; 0 if neither has them.
func placesOf(by string, seen limiter.Terms) int64 {
	if by == "" && seen.Kind == limiter.Concurrency {
		return seen.Numbers[0]
	}
	name, text, _ := strings.Cut(by, " ")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && name == kindName(limiter.Concurrency) {
		return n
	}
	return 0
}

// specOf returns the limit of terms, which lack a quota's calendar. It is that of the commands in seconds.
func specOf(terms limiter.Terms) limiter.Spec {
	s := limiter.Spec{Kind: terms.Kind, Unit: terms.Unit, Reading: funnel.Capacity, Numbers: terms.Numbers}
	if s.Kind == limiter.Funnel {
		return withSeconds(s)
	}
	return s
}

// Names in links for limits of funnels beside that of CL.THROTTLE:
const (
	byCapacity     = "tokenbucket" // by the capacity, whatever CL.THROTTLE reads
	byMilliseconds = "pthrottle"
)

// maxTermBytes bounds the terms in an address, which errors quote.
const maxTermBytes = 160

// readTerms reads a limit as links have it, such as "throttle 15 30 60": a kind and the arguments of its
// command.
func (p *Page) readTerms(by string) (s limiter.Spec, isGiven bool, err error) {
	given := strings.Fields(by[:min(len(by), maxTermBytes)])
	if len(given) == 0 {
		return s, false, nil
	}
	s.Reading = p.source.Reading
	named := given[0]
	switch named {
	case byCapacity:
		given[0], s.Reading = kindName(limiter.Funnel), funnel.Capacity
	case byMilliseconds:
		given[0] = kindName(limiter.Funnel)
	}
	for s.Kind = range limiter.Kinds {
		if kindName(s.Kind) == given[0] {
			break
		}
	}
	row := s.Kind.Row()
	names, given := row.Arguments(), given[1:]
	s.Unit = row.Unit
	if len(names) == 0 || len(given) < len(names) {
		return s, false, fmt.Errorf("by=%s: want a kind and its limit, such as throttle 15 30 60", resp.Quote([]byte(by[:min(len(by), maxTermBytes)])))
	}
	for i := range names {
		if s.Numbers[i], err = strconv.ParseInt(given[i], 10, 64); err != nil {
			return s, false, fmt.Errorf("%s: %s is not a whole number", names[i], resp.Quote([]byte(given[i])))
		}
	}
	if named == byMilliseconds {
		s.Unit = funnel.Milliseconds
		s = withSeconds(s)
	}
	if row.Calendar && len(given) > len(names) {
		rules, _, err := namedlimit.ReadRules(append([]string{"QUOTA", given[0]}, given[1:]...), p.source.Reading)
		if err == nil {
			s.Calendar, err = p.source.Calendars.Of(rules[0].Calendar)
		}
		if err != nil {
			return s, false, err
		}
	}
	return s, true, nil
}

func (p *Page) readKey(t *words.Texts, text string) (key []byte, problem string) {
	if text == "" {
		return nil, t.KeyMissing
	}
	key, ok := resp.Unquote(text)
	if !ok {
		return nil, t.KeyQuotes
	}
	if len(key) > p.source.MaxKeyBytes {
		return nil, fmt.Sprintf(t.KeyTooLong, p.source.MaxKeyBytes)
	}
	return key, ""
}

// problemText tells why there is no answer.
func problemText(t *words.Texts, err error) string {
	var argument *funnel.ArgumentError
	var failure store.Failure
	switch {
	case errors.Is(err, limiter.ErrWrongType):
		return t.WrongKind
	case errors.As(err, &failure) && strings.HasPrefix(failure.Line, "STOREDOWN "):
		return t.StoreDown
	case errors.Is(err, errLimitUnknown):
		return t.LimitUnknown
	case errors.As(err, &argument):
		return argument.Name + t.Colon + fmt.Sprintf(t.NumberTooSmall, strconv.FormatInt(argument.Least, 10))
	case errors.Is(err, funnel.ErrZeroRate):
		return t.ZeroRate
	case errors.Is(err, funnel.ErrTooSlow):
		return t.TooSlow
	case errors.Is(err, window.ErrTooLong):
		return t.TooLong
	}
	return err.Error()
}

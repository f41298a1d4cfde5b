// Package ask answers what the live page is asked about, a key or a named limit: what the next call would
// get, and which limit that follows from. It changes nothing. A Source is safe for concurrent use if its
// functions are.
package ask

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// Source is what answers come from.
type Source struct {
	Now func() int64 // Unix nanoseconds
	// State returns a key's state without changing it.
	State     func(nowNs int64, key store.Key) (s limiter.State, ok bool, err error)
	Limits    func() []*namedlimit.Limit // by name
	Calendars *calendar.Set              // of quotas
	// LastSeen returns the terms of a key's last counted call, if it is one of the hottest.
	LastSeen func(key store.Key) limiter.Terms

	Reading     funnel.Reading
	Databases   int
	MaxKeyBytes int
	OneDatabase bool // only the first is asked: the store is on other machines
}

// Question is what the address asks about: a key, or a named limit as a whole.
type Question struct {
	Text    string // as entered
	Problem string // why there is no answer; empty for none

	Key   *Answer
	Limit *namedlimit.Limit // if no key is asked for
}

func (q *Question) IsOpen() bool { return q.Key != nil || q.Limit != nil || q.Problem != "" }

// found is a key with its state.
type found struct {
	store.Key
	State  limiter.State
	Known  bool
	Others []uint16 // further databases that have the key
}

// search is one question while it is answered.
type search struct {
	*Source
	t     *words.Texts
	query url.Values
}

// Ask reads the question of an address: key, and optionally db, limit and by, or limit alone. What it does
// not say is taken from the key's state and its last call.
func (from *Source) Ask(t *words.Texts, query url.Values) (q Question) {
	in := &search{from, t, query}
	q.Text = query.Get("key")
	limitName := strings.TrimSpace(query.Get("limit"))
	if !query.Has("key") {
		if limitName == "" {
			return q
		}
		if q.Limit = in.LimitOf(limitName); q.Limit == nil {
			q.Problem = t.LimitUnknown
		}
		return q
	}
	text, by := q.Text, query.Get("by")
	if c, ok := readCall(text); ok {
		text, by, limitName = resp.Quote([]byte(c.key)), c.by, cmp.Or(c.limit, limitName)
	}
	key, problem := in.readKey(t, text)
	if problem != "" {
		q.Problem = problem
		return q
	}
	q.Text = KeyText(key) // an input would change binary bytes when submitted again
	var err error
	switch f := (found{Key: store.Key{Name: key}}); {
	case limitName != "":
		q.Key, err = in.askNamed(&f, limitName)
	default:
		if err = in.find(&f); err != nil {
			break
		}
		if limit := in.LimitOf(string(key)); !f.Known && limit != nil {
			q.Limit = limit
			return q
		}
		q.Key, err = in.askKey(&f, by)
	}
	if err != nil {
		q.Problem = problemText(t, err)
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
func (in *search) find(f *found) (err error) {
	nowNs := in.Now()
	if given := strings.TrimSpace(in.query.Get("db")); given != "" || in.OneDatabase {
		db, err := strconv.ParseUint(cmp.Or(given, "0"), 10, 16)
		if err != nil || int(db) >= in.Databases {
			return fmt.Errorf(in.t.DatabaseTooLarge, in.Databases-1)
		}
		f.DB = uint16(db)
		f.State, f.Known, err = in.State(nowNs, f.Key)
		return err
	}
	for db := range min(in.Databases, maxDatabases) {
		key := store.Key{DB: uint16(db), Name: f.Name}
		state, known, err := in.State(nowNs, key)
		switch {
		case err != nil:
			return err
		case !known:
		case f.Known:
			f.Others = append(f.Others, key.DB)
		default:
			f.Key, f.State, f.Known = key, state, true
		}
	}
	return nil
}

// maxDatabases bounds the databases that are searched for a key.
const maxDatabases = 1024

// LimitOf returns a named limit, or nil.
func (from *Source) LimitOf(name string) *namedlimit.Limit {
	all := from.Limits()
	i, found := slices.BinarySearchFunc(all, name, func(l *namedlimit.Limit, name string) int { return cmp.Compare(l.Name, name) })
	if !found {
		return nil
	}
	return all[i]
}

// errLimitUnknown reports that there is no limit of a name.
var errLimitUnknown = errors.New("no such limit")

// askNamed answers about a key of CL.CHECK, given without the limit's name.
func (in *search) askNamed(f *found, name string) (*Answer, error) {
	limit := in.LimitOf(name)
	if limit == nil {
		return nil, errLimitUnknown
	}
	key := f.Name
	f.Name = append([]byte(limit.Name+":"), key...) // as CL.CHECK does
	if most := in.MaxKeyBytes; len(f.Name) > most {
		return nil, fmt.Errorf(in.t.KeyTooLong, most-len(limit.Name)-1)
	}
	if err := in.find(f); err != nil {
		return nil, err
	}
	return in.lookNamed(f, limit, key)
}

// askKey answers about any key by its state and, as a state has no limit, by the given terms or those of its
// last call.
func (in *search) askKey(f *found, by string) (*Answer, error) {
	seen := in.LastSeen(f.Key)
	if f.Known && f.State.Kind == limiter.Named || !f.Known && (seen.Kind == limiter.Named || by == "" && seen.Numbers[0] == 0) {
		name, key, joined := strings.Cut(string(f.Name), ":") // no limit's name has a colon
		if limit := in.LimitOf(name); joined && limit != nil {
			return in.lookNamed(f, limit, []byte(key))
		}
	}
	if f.Known && f.State.Kind == limiter.Value {
		return in.lookAtValue(f), nil
	}
	switch places := placesOf(by, seen); {
	case places <= 0:
	case !f.Known || f.State.Kind == limiter.Concurrency:
		a := in.lookAtPlaces(f, places)
		a.IsGiven = by != ""
		return a, nil
	case by != "":
		return nil, limiter.ErrWrongType
	}
	spec, isGiven, err := in.readTerms(by)
	if err != nil {
		return nil, err
	}
	if !isGiven {
		spec = specOf(seen)
	}
	switch fits := !f.Known || f.State.IsOf(spec.Kind); {
	case isGiven && !fits:
		return nil, limiter.ErrWrongType
	case !isGiven && (!fits || seen.Numbers[0] == 0): // only what the state says by itself
		return &Answer{found: *f, Kind: f.State.Kind}, nil
	}
	a, err := in.lookBy(f, spec)
	if err != nil {
		return nil, err
	}
	a.IsGiven = isGiven
	if spec.Calendar != nil {
		a.By = by // with the window
	}
	return a, nil
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
	terms = asCommand(terms)
	s := limiter.Spec{Kind: terms.Kind, Unit: terms.Unit, Reading: funnel.Capacity, Numbers: terms.Numbers}
	if s.Kind == limiter.Funnel {
		return withSeconds(s)
	}
	return s
}

func (from *Source) readKey(t *words.Texts, text string) (key []byte, problem string) {
	if text == "" {
		return nil, t.KeyMissing
	}
	key, ok := resp.Unquote(text)
	if !ok {
		return nil, t.KeyQuotes
	}
	if len(key) > from.MaxKeyBytes {
		return nil, fmt.Sprintf(t.KeyTooLong, from.MaxKeyBytes)
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

package limiter

import (
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/value"
)

var (
	// ErrNotValue reports a limiter's key where a step may change only values. Nothing has changed.
	ErrNotValue = errors.New("limiter: the key is a limiter's")
	// ErrNotTAT reports a number for a funnel that is not a time ahead. Nothing has changed.
	ErrNotTAT = errors.New("limiter: not the TAT of a funnel")
	// ErrEndless reports a value that would never expire where each must. Nothing has changed.
	ErrEndless = errors.New("limiter: the value would never expire")
)

type values struct{ defaults }

func (values) row() Row {
	return Row{Name: "value", Type: "string", Command: "set", Endless: true}
}

func (values) makesKey(r Rule, _ int64) bool {
	by, ok := r.Shared.(*Increment)
	return r.Writes() && (!ok || by.When != IfFound)
}

func (values) valid(s State) bool { return value.Valid(s.Payload) }

// Operations of a Value rule, in its first word; the second is the number to add.
const (
	readValue = iota
	addToValue
	incrementValue // as Shared, an *Increment, asks
)

// Read makes a zero Rule that of GET. Texts are appended to the sink while they fit.
func (r *Rule) Read(sink *Sink) { r.Kind, r.Packed[0], r.Shared = Value, readValue, sink }

// Add makes a zero Rule that of INCR and its like.
func (r *Rule) Add(n int64) { r.Kind, r.Packed[0], r.Packed[1] = Value, addToValue, n }

// Writes reports whether a Value rule changes values.
func (r *Rule) Writes() bool { return r.Packed[0] != readValue }

// Sink takes the texts read by a batch, within its capacity.
type Sink struct{ Texts []byte }

// Forms of a value in the Remaining of a result; Limit is the number, or a text's place in the Sink, and
// RetryAfter the text's length.
const (
	NoValue = iota
	Number
	Text
	LongText // does not fit the Sink; RetryAfter is its length
	Pair     // of INCREX: the number, and in RetryAfter the one added; Limited if it was declined
)

// DecideValue decides a request by a Value rule; see Decide. A text is not changed in place.
func (r *Rule) DecideValue(s *State, nowNs int64, result *funnel.Result) (changed bool, err error) {
	*result = funnel.Result{}
	switch r.Packed[0] {
	case addToValue:
		return r.add(s, nowNs, result)
	case incrementValue:
		return r.increment(s, nowNs, result)
	}
	if s.ExpiresNs <= nowNs {
		return false, nil
	}
	if s.Kind == Value {
		r.read(s.Payload, result)
		return false, nil
	}
	tatNs, err := s.TAT(nowNs)
	if err == nil {
		result.Remaining, result.Limit = Number, tatNs
	}
	return false, err
}

func (r *Rule) read(payload []byte, result *funnel.Result) {
	if n, ok := value.Counter(payload); ok {
		result.Remaining, result.Limit = Number, n
		return
	}
	text := value.Text(payload)
	sink, _ := r.Shared.(*Sink)
	if sink == nil || len(text) > cap(sink.Texts)-len(sink.Texts) {
		result.Remaining, result.RetryAfter = LongText, int64(len(text))
		return
	}
	result.Remaining, result.Limit, result.RetryAfter = Text, int64(len(sink.Texts)), int64(len(text))
	sink.Texts = append(sink.Texts, text...)
}

func (r *Rule) add(s *State, nowNs int64, result *funnel.Result) (changed bool, err error) {
	expiresNs := s.ExpiresNs
	if expiresNs <= nowNs {
		if r.Flags&MustExpire != 0 {
			return false, ErrEndless
		}
		s.Kind, s.Payload, expiresNs = Value, value.AppendCounter(s.Payload[:0], 0), NeverNs
	}
	if s.Kind != Value {
		return false, ErrWrongType
	}
	payload, n, err := value.Add(s.Payload, r.Packed[1])
	if err != nil {
		return false, err
	}
	s.Payload, s.ExpiresNs = payload, expiresNs
	result.Remaining, result.Limit = Number, n
	return true, nil
}

// IsFunnel reports whether a live state has a TAT that GET reads.
func IsFunnel(s *State) bool { return s.Kind == Funnel || s.Kind == Reserving }

// AsTAT returns the funnel for a counter that is to replace a live funnel, and other states as they are. It
// returns ErrNotTAT for a number that cannot be one.
func AsTAT(to State, nowNs int64) (State, error) {
	tatNs, ok := value.Counter(to.Payload)
	if to.Kind != Value || !ok {
		return to, nil
	}
	if !IsTAT(tatNs, nowNs) {
		return to, ErrNotTAT
	}
	return State{ExpiresNs: tatNs}, nil
}

// IsTAT reports whether a number may be set as a funnel's TAT.
func IsTAT(tatNs, nowNs int64) bool { return tatNs > nowNs && tatNs-nowNs <= funnel.MaxToleranceNs }

// Careful is a Step that may be refused for what it changes, or makes.
type Careful struct {
	Step
	OnlyValues bool // else ErrNotValue
	MustExpire bool // else ErrEndless
}

func (c *Careful) Do(s *State, nowNs int64) (changed bool, err error) { return c.DoBehind(s, nowNs, 0) }

func (c *Careful) DoBehind(s *State, nowNs, byNs int64) (changed bool, err error) {
	was, live := *s, s.ExpiresNs > nowNs
	if c.OnlyValues && live && s.Kind != Value {
		return false, ErrNotValue
	}
	if timed, ok := c.Step.(Timed); ok {
		changed, err = timed.DoBehind(s, nowNs, byNs)
	} else {
		changed, err = c.Step.Do(s, nowNs)
	}
	if !changed || s.ExpiresNs <= nowNs {
		return changed, err
	}
	switch {
	case c.OnlyValues && s.Kind != Value:
		err = ErrNotValue
	case c.MustExpire && IsEndless(s) && (!live || !IsEndless(&was)):
		err = ErrEndless
	default:
		return true, nil
	}
	*s = was
	return false, err
}

func (c *Careful) Copy() (copied Step, take func()) {
	inner, take := c.Step.Copy()
	return &Careful{Step: inner, OnlyValues: c.OnlyValues, MustExpire: c.MustExpire}, take
}

func ValueOf(text []byte, expiresNs int64) State {
	return State{Kind: Value, ExpiresNs: expiresNs, Payload: value.Append(nil, text)}
}

// AppendValue appends a value as GET returns it.
func AppendValue(b []byte, s *State) []byte { return value.AppendTo(b, s.Payload) }

// ValueText returns a value as GET does: a part of the payload, or a number appended to digits.
func ValueText(digits []byte, s *State) []byte {
	if value.IsCounter(s.Payload) {
		return AppendValue(digits, s)
	}
	return value.Text(s.Payload)
}

// IsEndless reports whether a state is a value that never expires.
func IsEndless(s *State) bool { return s.Kind == Value && s.ExpiresNs == NeverNs }

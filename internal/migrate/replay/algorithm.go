package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/base/zones"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// Algorithm is a limiter whose decisions follow from the preceding rows alone; "" is the funnel.
type Algorithm string

// Algorithms besides those of Algorithms' other kinds. Their columns are the arguments of CL.THROTTLE and
// CL.TOKENBUCKET; negative quantities fill a bucket. CL.QUOTA's windows are columns of words.
const (
	Funnel      Algorithm = "funnel"
	TokenBucket Algorithm = "tokenbucket"
	Quota       Algorithm = "quota"
)

// Algorithms returns the names of all algorithms.
func Algorithms() []string {
	names := []string{string(Funnel), string(TokenBucket)}
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		if short := kind.Row().Short; short != "" {
			names = append(names, short)
		}
	}
	return append(names, string(Quota))
}

func (a Algorithm) kind() limiter.Kind {
	if a == Quota {
		return limiter.Quota
	}
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		if short := kind.Row().Short; short != "" && short == string(a) {
			return kind
		}
	}
	return limiter.Funnel
}

// CountsDenied reports whether the algorithm can count denied requests.
func (a Algorithm) CountsDenied() bool { return a.kind().Row().CountsDenied }

// Debits reports whether the algorithm can charge units beyond its limit.
func (a Algorithm) Debits() bool {
	kind := a.kind()
	return kind == limiter.Funnel || kind.Row().Debits // CL.DEBIT is a funnel's
}

// namesLimit reports whether flags set a limit.
func (o *Options) namesLimit() bool {
	numbers := []*int64{o.MaxBurst, o.Count, o.Capacity, o.RefillCount, o.MaxCount, o.Period}
	return slices.ContainsFunc(numbers, func(n *int64) bool { return n != nil }) ||
		o.Debit || o.Algorithm == TokenBucket || o.Algorithm.kind() != limiter.Funnel
}

// fixed returns the limit that flags set.
func (o *Options) fixed() (r limiter.Rule, err error) {
	s := o.spec()
	for i, n := range o.limits() {
		if n.fallback == nil {
			return limiter.Rule{}, fmt.Errorf("%s is missing: give %s", n.name, n.flag)
		}
		s.Numbers[i] = *n.fallback
	}
	if s.Kind == limiter.Quota {
		if o.Every == "" {
			return limiter.Rule{}, errors.New("every is missing: give --every")
		}
		if s.Calendar, err = newWindows(o).calendar(nil); err != nil {
			return limiter.Rule{}, err
		}
	}
	err = s.Build(&r)
	return r, o.Algorithm.named(err)
}

// limits returns the limit's columns in the order of its command's arguments.
func (o *Options) limits() []number {
	row := o.Algorithm.kind().Row()
	names := row.Arguments()
	if o.Algorithm == TokenBucket {
		names = []string{"capacity", "refill_count", "period"}
	}
	columns := make([]number, len(names))
	for i, name := range names {
		columns[i] = number{name, "--" + strings.ReplaceAll(name, "_", "-"), -1, o.limit(name)}
	}
	return columns
}

// limit returns a column's default, or nil.
func (o *Options) limit(column string) *int64 {
	return map[string]*int64{
		"max_burst": o.MaxBurst, "count": o.Count, "capacity": o.Capacity, "refill_count": o.RefillCount,
		"max_count": o.MaxCount, "period": o.Period,
	}[column]
}

// spec returns the limit without its numbers.
func (o *Options) spec() limiter.Spec {
	s := limiter.Spec{Kind: o.Algorithm.kind(), Reading: o.Reading}
	s.Unit = s.Kind.Row().Unit
	if o.Milliseconds {
		s.Unit = funnel.Milliseconds
	}
	if o.CountDenied {
		s.Flags = limiter.CountDenied
	}
	if o.Algorithm == TokenBucket {
		s.Reading = funnel.Capacity
	}
	return s
}

// named rewrites an error about a command's arguments to columns and flags.
func (a Algorithm) named(err error) error {
	var names *strings.Replacer
	switch {
	case err != nil && a == TokenBucket:
		names = strings.NewReplacer("max_burst", "capacity", "count", "refill_count", "funnel", "bucket")
	case err != nil && a.kind() == limiter.SlidingWindow:
		names = strings.NewReplacer("add APPROX", "use --algorithm approxwindow")
	default:
		return err
	}
	return errors.New(names.Replace(err.Error()))
}

// text is a column of words, or its fallback.
type text struct {
	name     string
	column   int
	fallback string
}

func (t *text) parse(record []string) string {
	if t.column >= 0 && record[t.column] != "" {
		return record[t.column]
	}
	return t.fallback
}

// yes reads 0 or 1, by default 0.
func (t *text) yes(record []string) (bool, error) {
	switch field := t.parse(record); field {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %s is neither 0 nor 1", t.name, quoted(field))
	}
}

func yesText(name string, fallback bool) text {
	if fallback {
		return text{name, -1, "1"}
	}
	return text{name, -1, ""}
}

// windows are the columns of a quota's windows, by UTC without a time zone. The wall clock is the trace's.
type windows struct {
	every, zone, start, epoch text
	calendars                 *calendar.Set
}

func newWindows(o *Options) *windows {
	return &windows{
		every: text{"every", -1, o.Every}, zone: text{"time_zone", -1, o.TimeZone}, start: text{"start", -1, o.Start},
		epoch: yesText("epoch", o.Epoch), calendars: calendar.NewSet(&calendar.Wall{}, zones.Load),
	}
}

func (w *windows) columns() []*text { return []*text{&w.every, &w.zone, &w.start, &w.epoch} }

// calendar returns the calendar of a record. Without columns the record is nil.
func (w *windows) calendar(record []string) (*calendar.Calendar, error) {
	word := w.every.parse(record)
	if word == "" {
		return nil, errors.New("every: the field is empty: fill it in or give --every")
	}
	every, ok := calendar.EveryOf([]byte(word))
	if !ok {
		return nil, fmt.Errorf("every: %s is no window: want second, minute, hour, day, week, month or year", quoted(word))
	}
	var start calendar.Start
	if word := w.start.parse(record); word != "" {
		var err error
		if start, err = calendar.ParseStart(every, []byte(word)); err != nil {
			return nil, err
		}
	}
	epoch, err := w.epoch.yes(record)
	if err != nil {
		return nil, err
	}
	return w.calendars.Find(every, []byte(w.zone.parse(record)), start, epoch)
}

// checkDebit refuses what the commands with DEBIT refuse.
func (o *Options) checkDebit(quantity int64) error {
	switch {
	case !o.Algorithm.Debits():
		return fmt.Errorf("debit: %s has no debits", o.Algorithm)
	case o.CountDenied:
		return errors.New("debit: a debit is never denied; leave out --count-denied")
	case quantity < 1:
		return &funnel.ArgumentError{Name: "quantity", Value: quantity, Least: 1}
	}
	return nil
}

// debit marks a rule if its algorithm has debits. Refunds and looks are none.
func (o *Options) debit(r *limiter.Rule, quantity int64) {
	if quantity > 0 && o.Algorithm.Debits() {
		r.Flags = limiter.Debit
	}
}

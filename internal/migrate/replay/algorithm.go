package replay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	c := o.columns()
	if unset := c.unset(); unset != nil {
		return r, fmt.Errorf("%s is missing: give %s", unset.name, unset.flag())
	}
	limit, err := c.parseLimit(nil)
	if err == nil {
		err = o.Algorithm.named(limit.Build(&r))
	}
	return r, err
}

// limits returns the limit's columns in the order of its command's arguments.
func (o *Options) limits() []column {
	row := o.Algorithm.kind().Row()
	names := row.Arguments()
	if o.Algorithm == TokenBucket {
		names = []string{"capacity", "refill_count", "period"}
	}
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = o.column(name)
	}
	return columns
}

// column returns a column with its default.
func (o *Options) column(name string) column {
	fallback := map[string]string{"quantity": "1", "every": o.Every, "time_zone": o.TimeZone, "start": o.Start}[name]
	number := map[string]*int64{
		"max_burst": o.MaxBurst, "count": o.Count, "capacity": o.Capacity, "refill_count": o.RefillCount,
		"max_count": o.MaxCount, "period": o.Period, "quantity": o.Quantity,
	}[name]
	if number != nil {
		fallback = strconv.FormatInt(*number, 10)
	}
	if name == "epoch" && o.Epoch || name == "debit" && o.Debit {
		fallback = "1"
	}
	return column{name: name, at: -1, fallback: fallback}
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

// windows are the columns of a quota's windows, by UTC without a time zone. The wall clock is the trace's.
type windows struct {
	every, zone, start, epoch column
	calendars                 *calendar.Set
}

// newWindows returns nil for another algorithm than quotas.
func newWindows(o *Options) *windows {
	if o.Algorithm.kind() != limiter.Quota {
		return nil
	}
	return &windows{
		every: o.column("every"), zone: o.column("time_zone"), start: o.column("start"), epoch: o.column("epoch"),
		calendars: calendar.NewSet(&calendar.Wall{}, zones.Load),
	}
}

// calendar returns the calendar of a record. Without columns the record is nil.
func (w *windows) calendar(record []string) (*calendar.Calendar, error) {
	word, err := w.every.filled(record)
	if err != nil {
		return nil, err
	}
	every, ok := calendar.EveryOf([]byte(word))
	if !ok {
		return nil, fmt.Errorf("every: %s is no window: want second, minute, hour, day, week, month or year", quoted(word))
	}
	var start calendar.Start
	if word := w.start.text(record); word != "" {
		if start, err = calendar.ParseStart(every, []byte(word)); err != nil {
			return nil, err
		}
	}
	epoch, err := w.epoch.yes(record)
	if err != nil {
		return nil, err
	}
	return w.calendars.Find(every, []byte(w.zone.text(record)), start, epoch)
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

// debit marks a rule if its algorithm has debits. Refunds and looks are not debits.
func (o *Options) debit(r *limiter.Rule, quantity int64) {
	if quantity > 0 && o.Algorithm.Debits() {
		r.Flags = limiter.Debit
	}
}

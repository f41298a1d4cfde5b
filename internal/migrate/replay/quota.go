package replay

import (
	"errors"
	"fmt"

	"cellserver/internal/base/zones"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

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

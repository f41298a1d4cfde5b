package replay

import (
	"bytes"
	"strconv"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/migrate/monitor"
)

// maxStepBack is the largest step back of the monitored server's clock to be ignored: lines are in order of
// execution.
const maxStepBack = time.Second

// monitorTrace reads limiter calls from the output of redis-cli monitor and skips other commands.
type monitorTrace struct {
	lines
	calls        *monitor.Calls
	options      Options
	fixed        *limiter.Rule // replaces the calls' own limits; nil for none
	isReordering bool          // sort rows of the past, instead of moving them to the present
	lastNs       int64
	skipped      int64
	line         monitor.Line
}

func newMonitorTrace(in *input, o Options) (*monitorTrace, error) {
	t := &monitorTrace{lines: newLines(in, o), calls: monitor.NewCalls(o.Reading), options: o, isReordering: o.ReorderWindow > 0}
	if !o.namesLimit() {
		return t, nil
	}
	rule, err := o.fixed()
	t.fixed = &rule
	return t, err
}

func (t *monitorTrace) columns() []string { return []string{"at", "db", "key", "call"} }

func (t *monitorTrace) read(r *row) error {
	for {
		text, err := t.next()
		if err != nil {
			return err
		}
		if bytes.Equal(text, []byte("OK")) { // redis-cli's first line, repeated in joined files
			continue
		}
		found, err := t.parse(text, r)
		if err != nil || found {
			return t.bad(err)
		}
	}
}

// parse reports whether a line is a call to decide.
func (t *monitorTrace) parse(text []byte, r *row) (found bool, err error) {
	if err := t.line.Parse(text); err != nil {
		return false, err
	}
	use, name := t.calls.Use(t.line.Args)
	if use == monitor.Limits {
		t.skipped++
	}
	if use != monitor.Decides {
		return false, nil
	}
	q, err := t.calls.Request(name, &t.line)
	if err != nil {
		return false, err
	}
	r.atNs, r.db, r.key = t.line.AtNs, t.line.DB, string(q.Key.Name)
	if !t.isReordering && t.lastNs > r.atNs && t.lastNs-r.atNs <= int64(maxStepBack) {
		r.atNs = t.lastNs
	}
	t.lastNs = r.atNs
	r.rule, r.quantity = q.Rule, q.Quantity
	if t.fixed != nil {
		r.rule = *t.fixed
		if q.Rule.Flags == limiter.AtMost {
			r.rule.Flags = limiter.AtMost
		}
		if t.options.Debit || q.Rule.Flags&limiter.Debit != 0 {
			t.options.debit(&r.rule, q.Quantity)
		}
	}
	r.fields = append(r.fields, unixSeconds(r.atNs), strconv.Itoa(int(r.db)), r.key, monitor.Text(t.line.Args))
	return true, nil
}

// unixSeconds formats a time as MONITOR and CSV traces do.
func unixSeconds(atNs int64) string {
	return strconv.FormatInt(atNs/1e9, 10) + "." + strconv.FormatInt(1e6+atNs%1e9/1e3, 10)[1:]
}

package replay

import (
	"bytes"
	"strconv"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/migrate/monitor"
)

// maxStepBack is by how much the clock of a server that shows its calls may be set back. Their order is known in any case: it
// is the one in which they were executed.
const maxStepBack = time.Second

// monitorTrace reads the calls of limiters from what redis-cli monitor prints. Other commands are passed over.
type monitorTrace struct {
	lines
	calls  *monitor.Calls
	fixed  *limiter.Rule // decides instead of the calls' own limits, if it is there
	sorts  bool          // rows of the past are sorted, instead of taken for ones of now
	lastNs int64
	passed int64
	line   monitor.Line
}

func newMonitorTrace(in *input, o Options) (*monitorTrace, error) {
	t := &monitorTrace{
		lines: lines{name: o.Name, in: in}, calls: monitor.NewCalls(o.Reading), sorts: o.ReorderWindow > 0,
	}
	if !o.namesLimit() {
		return t, nil
	}
	rule, err := o.fixed()
	t.fixed = &rule
	return t, err
}

func (t *monitorTrace) columns() []string { return []string{"at", "db", "key", "call"} }
func (t *monitorTrace) passedOver() int64 { return t.passed }

func (t *monitorTrace) read(r *row) error {
	for {
		text, err := t.next()
		if err != nil {
			return err
		}
		if bytes.Equal(text, []byte("OK")) { // which redis-cli prints first, and files may be joined
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
		t.passed++
	}
	if use != monitor.Decides {
		return false, nil
	}
	q, err := t.calls.Request(name, &t.line)
	if err != nil {
		return false, err
	}
	r.atNs, r.db, r.key = t.line.AtNs, t.line.DB, string(q.Key.Name)
	if !t.sorts && t.lastNs > r.atNs && t.lastNs-r.atNs <= int64(maxStepBack) {
		r.atNs = t.lastNs
	}
	t.lastNs = r.atNs
	r.rule, r.quantity = q.Rule, q.Quantity
	if t.fixed != nil {
		r.rule = *t.fixed
	}
	r.fields = append(r.fields, unixSeconds(r.atNs), strconv.Itoa(int(r.db)), csvReadable(r.key), monitor.Text(t.line.Args))
	return true, nil
}

// unixSeconds is a time as MONITOR shows it, which a trace in CSV may have.
func unixSeconds(atNs int64) string {
	return strconv.FormatInt(atNs/1e9, 10) + "." + strconv.FormatInt(1e6+atNs%1e9/1e3, 10)[1:]
}

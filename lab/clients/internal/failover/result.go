package failover

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/lab/clients/internal/report"
)

// line describes a failover.
func (f Failover) line(kind string, i, of int) string {
	text := new(strings.Builder)
	fmt.Fprintf(text, "%s %s %d/%d: %d ms without a leader, %d ms with both;",
		kind, f.word(), i, of, f.Without.Milliseconds(), f.Both.Milliseconds())
	for _, s := range f.Sections {
		fmt.Fprintf(text, " %s %.0f ms (%d refused, %d unsent, %d unknown)",
			s.Library, s.LongestMs, s.Refused, s.Unsent, s.Unknown)
	}
	for _, a := range f.Accounts {
		fmt.Fprintf(text, " %s forgiven %d", a.Library, a.Forgiven())
	}
	return text.String()
}

func (f Failover) word() string {
	if f.Planned {
		return "planned"
	}
	return "kill"
}

// Check returns an error if a planned failover lost a unit or any counted one twice.
func (r Result) Check() error {
	var failures error
	for i, f := range r.Failovers {
		for _, a := range f.Accounts {
			if a.Doubled() > 0 {
				failures = errors.Join(failures, fmt.Errorf("%s %d: %s: %s", f.word(), i+1, a.Library, a))
			}
		}
	}
	for _, a := range r.Planned {
		if a.Doubled() > 0 || a.Forgiven() > 0 {
			failures = errors.Join(failures, fmt.Errorf("planned failovers: %s: %s", a.Library, a))
		}
	}
	return failures
}

func (a Account) String() string {
	return fmt.Sprintf("%d calls were allowed, %d of unknown result, %d units are charged",
		a.Allowed, a.Unknown, a.Charged)
}

// Report returns tables of results, side by side.
func Report(results []Result) string {
	text := new(strings.Builder)
	row := func(cells ...string) { fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | ")) }
	for _, planned := range []bool{false, true} {
		how := map[bool]string{false: "kill -9", true: "SENTINEL FAILOVER"}[planned]
		row(how, "failovers", "p50, ms", "longest, ms", "refused", "unsent", "unknown", "units")
		row("---", "--:", "--:", "--:", "--:", "--:", "--:", "---")
		for _, r := range results {
			r.rows(planned, row)
		}
		text.WriteString("\n")
	}
	for _, r := range results {
		all := r.errors()
		for _, failure := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(text, "%s, %6d times: %s\n", r.Kind, all[failure], failure)
		}
	}
	return text.String()
}

// rows are those of a result: the time without a leader, and each program's longest without a success.
func (r Result) rows(planned bool, row func(cells ...string)) {
	var without, both []float64
	libraries := map[string][]report.Section{}
	accounts := map[string][]Account{}
	for _, f := range r.Failovers {
		if f.Planned != planned {
			continue
		}
		without, both = append(without, ms(f.Without)), append(both, ms(f.Both))
		for _, s := range f.Sections {
			libraries[s.Library] = append(libraries[s.Library], s)
		}
		for _, a := range f.Accounts {
			accounts[a.Library] = append(accounts[a.Library], a)
		}
	}
	if len(without) == 0 {
		return
	}
	if planned {
		for _, a := range r.Planned {
			accounts[a.Library] = []Account{a}
		}
	}
	row(r.Kind+": without a leader", strconv.Itoa(len(without)), p50(without), longest(without), "", "", "", "")
	row(r.Kind+": both accept changes", strconv.Itoa(len(both)), p50(both), longest(both), "", "", "", "")
	for _, library := range slices.Sorted(maps.Keys(libraries)) {
		var total report.Section
		var times []float64
		for _, s := range libraries[library] {
			total.Add(s)
			times = append(times, s.LongestMs)
		}
		row(r.Kind+": "+library, strconv.Itoa(len(times)), p50(times), longest(times),
			strconv.Itoa(total.Refused), strconv.Itoa(total.Unsent),
			strconv.Itoa(total.Unknown), units(accounts[library]))
	}
}

// units says what became of the units of a library's keys.
func units(accounts []Account) string {
	var allowed, charged, forgiven, most, doubled int
	for _, a := range accounts {
		allowed += a.Allowed
		charged += a.Charged
		forgiven += a.Forgiven()
		most = max(most, a.Forgiven())
		doubled += a.Doubled()
	}
	return fmt.Sprintf("%d allowed, %d charged; %d forgiven, at most %d at once, %d doubled",
		allowed, charged, forgiven, most, doubled)
}

// errors counts the programs' errors by library and text.
func (r Result) errors() map[string]int {
	all := map[string]int{}
	for _, f := range r.Failovers {
		for _, s := range f.Sections {
			for text, n := range s.Errors {
				all[s.Library+": "+text] += n
			}
		}
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func p50(values []float64) string {
	values = slices.Sorted(slices.Values(values))
	return fmt.Sprintf("%.0f", values[len(values)/2])
}

func longest(values []float64) string { return fmt.Sprintf("%.0f", slices.Max(values)) }

package dashboard

import (
	"strings"
	"testing"

	"cellserver/internal/edge/dashboard/history"
)

// TestMinutes checks that a row is a minute of the clock.
func TestMinutes(t *testing.T) {
	p, sum := New(testSource(nil)), uint64(0)
	for i := -1; i < 75; i++ { // two and a half minutes
		sum += uint64(2 * max(0, i)) // so that point i has i a second
		p.history.Add(int64(i)*int64(history.Interval), history.Sample{Allowed: sum, Keys: max(0, i)}, p.source.Latency())
	}
	rows, err := render(p.view(newRequest("/")).minutesPart())
	if err != nil {
		t.Fatal(err)
	}
	want := `<tr data-k="00:01"><th scope="row"><time datetime="1970-01-01T00:01Z">00:01</time></th><td>44.5</td><td>0</td><td>–</td><td>–</td><td>0</td><td>59</td><td>0 B</td></tr>` +
		`<tr data-k="00:00"><th scope="row"><time datetime="1970-01-01T00:00Z">00:00</time></th><td>14.5</td><td>0</td><td>–</td><td>–</td><td>0</td><td>29</td><td>0 B</td></tr>`
	if got := strings.ReplaceAll(rows, "\u00a0", " "); got != want {
		t.Errorf("the rows are %s", got)
	}
}

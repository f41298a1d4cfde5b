package dashboard

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/edge/dashboard/words"
)

// TestMinutes checks that a row is a minute of the clock, and that the current one is left out unless it is
// the only one.
func TestMinutes(t *testing.T) {
	var points []point
	for i := range 75 { // two and a half minutes
		points = append(points, point{atNs: int64(i) * int64(sampleInterval), allowed: float64(i), keys: i})
	}
	v := &view{t: words.English(), sampled: sampled{minutes: minutes(points)}}
	rows, err := render(v.minutesPart())
	if err != nil {
		t.Fatal(err)
	}
	want := `<tr data-k="00:01"><th scope="row"><time datetime="1970-01-01T00:01Z">00:01</time></th><td>44.5</td><td>0</td><td>–</td><td>–</td><td>0</td><td>59</td><td>0 B</td></tr>` +
		`<tr data-k="00:00"><th scope="row"><time datetime="1970-01-01T00:00Z">00:00</time></th><td>14.5</td><td>0</td><td>–</td><td>–</td><td>0</td><td>29</td><td>0 B</td></tr>`
	if got := strings.ReplaceAll(rows, "\u00a0", " "); got != want {
		t.Errorf("the rows are %s", got)
	}
	for _, tt := range []struct {
		name   string
		points []point
		keys   []int
	}{
		{"none", nil, nil},
		{"the first minute", points[:3], []int{2}},
		{"the second minute", points[:33], []int{29}},
		{"a gap", []point{{atNs: 0, keys: 1}, {atNs: int64(5 * time.Minute), keys: 2}, {atNs: int64(6 * time.Minute), keys: 3}}, []int{2, 1}},
	} {
		got := minutes(tt.points)
		if len(got) != len(tt.keys) {
			t.Fatalf("%s: %d minutes, want %d", tt.name, len(got), len(tt.keys))
		}
		for i, keys := range tt.keys {
			if got[i].most.keys != keys {
				t.Errorf("%s: %d keys in minute %d, want %d", tt.name, got[i].most.keys, i, keys)
			}
		}
	}
}

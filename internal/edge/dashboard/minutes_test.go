package dashboard

import (
	"strings"
	"testing"

	"cellserver/internal/edge/dashboard/words"
)

// TestMinutes checks that a row is a minute of the clock, and that the current one is left out unless it is
// the only one.
func TestMinutes(t *testing.T) {
	at := func(i int) point {
		return point{&Sample{Allowed: uint64(i), Keys: i}, &Sample{}, int64(i) * int64(sampleInterval), 1, latencies{}}
	}
	var points []point
	for i := range 75 { // two and a half minutes
		points = append(points, at(i))
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
		{"a gap", []point{at(0), at(150), at(180)}, []int{150, 0}},
	} {
		got := minutes(tt.points)
		if len(got) != len(tt.keys) {
			t.Fatalf("%s: %d minutes, want %d", tt.name, len(got), len(tt.keys))
		}
		for i, keys := range tt.keys {
			if got[i].keys != keys {
				t.Errorf("%s: %d keys in minute %d, want %d", tt.name, got[i].keys, i, keys)
			}
		}
	}
}

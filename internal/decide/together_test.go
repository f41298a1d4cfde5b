package decide

import (
	"fmt"
	"testing"

	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// TestTogether: results, charges and counts of requests that are charged together.
func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		name  string
		units []int64 // of the keys a, b, a, b and so on, which hold five
		want  string  // limited, remaining and retry after of each; units granted; keys picked
	}{
		{"all fit", []int64{1, 2, 3}, "false: false 4 -1, false 3 -1, false 1 -1; 6, a 2, b 1"},
		{"one is always limited", []int64{1, 6}, "true: false 5 -1, true 5 -1; 0, a 1, b 1"},
		{"one is limited by an earlier one", []int64{3, 1, 3}, "true: false 5 -1, false 5 -1, true 5 -1; 0, a 2, b 1"},
		{"looks", []int64{0, 0}, "false: false 5 -1, false 5 -1; 0, a 1, b 1"},
		{"the largest numbers", []int64{1 << 62, 1<<63 - 1}, "true: true 5 -1, true 5 -1; 0, a 1, b 1"},
	} {
		d, by := decider(t)
		s := shard.New()
		var batch []store.Request
		var keys []store.Key
		for i, units := range tt.units {
			batch = append(batch, request(t, string(rune('a'+i%2)), units))
			keys = append(keys, batch[i].Key)
		}
		tx := s.Begin(t0, keys)
		limited, err := d.Together(tx, t0, batch, by.Local)
		if err != nil || !tx.Commit() {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got := fmt.Sprint(limited, ":")
		for i := range batch {
			r := &batch[i].Result
			got += fmt.Sprint(" ", r.Limited, " ", r.Remaining, " ", r.RetryAfter, ",")
		}
		var st store.Stats
		s.UpdateStats(&st)
		got = fmt.Sprint(got[:len(got)-1], "; ", st.Granted)
		for _, e := range d.Records.TopKeys.Top(0, t0+sec, 10) {
			got += fmt.Sprintf(", %s %.0f", e.Name, e.CallsPerSecond)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

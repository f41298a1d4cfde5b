package killtest

import (
	"slices"
	"testing"
)

// TestCompare: a key may have the state of the last confirmed step or of any later step.
func TestCompare(t *testing.T) {
	tests := []struct {
		name            string
		base            int64
		steps           []int64
		confirmed       int64
		survived, wrong []int64 // of the units from 0 to 9
	}{
		{"never called", 3, nil, 0, nil, []int64{0, 1, 2, 4, 5, 6, 7, 8, 9}},
		{"all kept", 0, []int64{1, 4, 6}, 3, nil, []int64{0, 1, 2, 3, 4, 5, 7, 8, 9}},
		{"some kept", 0, []int64{1, 4, 6, 8}, 2, []int64{6, 8}, []int64{0, 1, 2, 3, 5, 7, 9}},
		{"none kept", 2, []int64{5, 0}, 0, []int64{0, 5}, []int64{1, 3, 4, 6, 7, 8, 9}},
		{"deleted for good", 5, []int64{0, 3}, 1, []int64{3}, []int64{1, 2, 4, 5, 6, 7, 8, 9}},
	}
	for _, tt := range tests {
		var survived, wrong []int64
		for units := range int64(10) {
			c := newClient(1, Config{Keys: 1})
			c.base[0] = tt.base
			for _, s := range tt.steps {
				c.add(0, s)
			}
			c.confirmed.Store(tt.confirmed)
			found := c.compare([]int64{units})
			if found.Survived > 0 {
				survived = append(survived, units)
			}
			if len(found.Wrong) > 0 {
				wrong = append(wrong, units)
			}
			if found.Keys != 1 || found.Confirmed != int(tt.confirmed) || found.Unsure != len(tt.steps)-int(tt.confirmed) {
				t.Errorf("%s: %+v", tt.name, found)
			}
		}
		if !slices.Equal(survived, tt.survived) || !slices.Equal(wrong, tt.wrong) {
			t.Errorf("%s: survived %d, want %d; wrong %d, want %d", tt.name, survived, tt.survived, wrong, tt.wrong)
		}
	}
}

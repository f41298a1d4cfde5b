package charges

import (
	"slices"
	"testing"
)

// TestCompare: an item may have the state after the last call that is needed, or after any later one.
func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name            string
		base            int64
		steps           []step
		confirmed       int
		need            Need
		wrong, forgiven []int64 // of the units from 0 to 9; a unit for each call that is forgiven
	}{
		{"never called", 3, nil, 0, Waited, []int64{0, 1, 2, 4, 5, 6, 7, 8, 9}, nil},
		{"all confirmed", 0, steps(1, 4, 6), 3, Waited, []int64{0, 1, 2, 3, 4, 5, 7, 8, 9}, nil},
		{"some confirmed", 0, steps(1, 4, 6, 8), 2, Waited, []int64{0, 1, 2, 3, 5, 7, 9}, []int64{4, 4, 6}},
		{"all answered", 0, steps(1, 4, 6, 8), 2, Answered, []int64{0, 1, 2, 3, 4, 5, 6, 7, 9}, nil},
		{"none confirmed", 2, steps(5, 0), 0, Waited, []int64{1, 3, 4, 6, 7, 8, 9}, []int64{2, 2, 5}},
		{"refused", 2, []step{{state: state{units: 7}, void: true}}, 1, Answered, []int64{0, 1, 3, 4, 5, 6, 7, 8, 9}, nil},
		{"uncertain", 2, []step{{state: state{units: 7}}}, 0, Answered, []int64{0, 1, 3, 4, 5, 6, 8, 9}, nil},
	} {
		var wrong, forgiven []int64
		for units := range int64(10) {
			c := newClient(1, Config{Clients: 1, Keys: 1})
			c.items[0].base.units = tt.base
			c.steps, c.confirmed = slices.Clone(tt.steps), tt.confirmed
			found := c.compare([]int64{units}, tt.need)
			if len(found.Wrong) > 0 {
				wrong = append(wrong, units)
			}
			for range found.Forgiven {
				forgiven = append(forgiven, units)
			}
			if c.items[0].now.units != units || len(c.steps) > 0 {
				t.Errorf("%s: %d units: goes on from %+v", tt.name, units, c.items[0].now)
			}
		}
		if !slices.Equal(wrong, tt.wrong) || !slices.Equal(forgiven, tt.forgiven) {
			t.Errorf("%s: wrong %d, want %d; forgiven %d, want %d", tt.name, wrong, tt.wrong, forgiven, tt.forgiven)
		}
	}
}

func steps(units ...int64) (all []step) {
	for _, n := range units {
		all = append(all, step{state: state{units: n}, answered: true})
	}
	return all
}

package server

import "testing"

// TestTally: what is under way is bounded by key, and in all.
func TestTally(t *testing.T) {
	const most, mostOfKey = 64, 16
	var p Tally[string]
	hosts := []string{"a", "b", "c", "d", "e"}
	for i, host := range hosts {
		for n := range mostOfKey {
			if want := i < most/mostOfKey; p.Take(host, most, mostOfKey) != want {
				t.Fatalf("host %s, number %d: want %t", host, n, want)
			}
		}
		if p.Take(host, most, mostOfKey) {
			t.Errorf("host %s has one more than its maximum", host)
		}
	}
	p.Leave("a")
	if p.Take("b", most, mostOfKey) || !p.Take("e", most, mostOfKey) || p.Take("a", most, mostOfKey) {
		t.Error("a place that is free is taken by whom it is not for")
	}
	for _, host := range hosts[1:4] {
		for range mostOfKey {
			p.Leave(host)
		}
	}
	for range mostOfKey - 1 {
		p.Leave("a")
	}
	p.Leave("e")
	if p.all != 0 || len(p.byKey) != 0 {
		t.Errorf("%d are left, of %v", p.all, p.byKey)
	}
}

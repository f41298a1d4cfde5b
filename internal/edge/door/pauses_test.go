package door

import "testing"

// TestPauses: the answers to strangers that wait are bounded by host, and in all.
func TestPauses(t *testing.T) {
	var p pauses
	hosts := []string{"a", "b", "c", "d", "e"}
	for i, host := range hosts {
		for n := range maxPausesOfHost {
			if want := i < maxPauses/maxPausesOfHost; p.take(host) != want {
				t.Fatalf("host %s, pause %d: want %t", host, n, want)
			}
		}
		if p.take(host) {
			t.Errorf("host %s has one more than its maximum", host)
		}
	}
	p.leave("a")
	if p.take("b") || !p.take("e") || p.take("a") {
		t.Error("a place that is free is taken by whom it is not for")
	}
	for _, host := range hosts[1:4] {
		for range maxPausesOfHost {
			p.leave(host)
		}
	}
	for range maxPausesOfHost - 1 {
		p.leave("a")
	}
	p.leave("e")
	if p.all != 0 || len(p.hosts) != 0 {
		t.Errorf("%d are left, of %v", p.all, p.hosts)
	}
}

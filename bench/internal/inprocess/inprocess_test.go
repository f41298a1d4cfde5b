package inprocess

import (
	"math/rand/v2"
	"testing"
)

func TestLimitersTakeEveryKey(t *testing.T) {
	for _, l := range limiters() {
		take, err := l.open(1000)
		if err != nil {
			t.Fatal(err)
		}
		var names keyNames
		for range 3 {
			if err := take(names.from(7)); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
		}
	}
}

func TestKeyNames(t *testing.T) {
	var names keyNames
	keys := names.from(99)
	if len(keys) != batch || string(keys[0]) != "key:000000000099" || string(keys[1]) != "key:000000000100" {
		t.Errorf("got %q", keys)
	}
	for _, key := range names.random(rand.New(rand.NewPCG(1, 1)), 10) {
		if len(key) != 16 || string(key[:15]) != "key:00000000000" {
			t.Errorf("got %q", key)
		}
	}
}

func TestUnknownLimiter(t *testing.T) {
	if _, err := Measure("none", 1); err == nil {
		t.Error("it is measured")
	}
}

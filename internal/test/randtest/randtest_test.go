package randtest

import (
	"fmt"
	"testing"
)

// logged is a test whose log is kept.
type logged struct {
	testing.TB
	log string
}

func (l *logged) Helper() {}

func (l *logged) Logf(format string, args ...any) { l.log += fmt.Sprintf(format, args...) }

func (l *logged) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// TestDrawnAgain: the numbers of a run follow from the seed that it has logged.
func TestDrawnAgain(t *testing.T) {
	t.Setenv(Env, "")
	first, second := &logged{TB: t}, &logged{TB: t}
	want := New(first).Uint64()
	if New(second).Uint64() == want || second.log == first.log {
		t.Errorf("two runs draw %d, with %s and %s", want, first.log, second.log)
	}
	var seed uint64
	if _, err := fmt.Sscanf(first.log, Env+"=%d", &seed); err != nil {
		t.Fatalf("%q: %v", first.log, err)
	}
	t.Setenv(Env, fmt.Sprint(seed))
	if got := New(&logged{TB: t}).Uint64(); got != want {
		t.Errorf("drew %d from %d, want %d", got, seed, want)
	}
}

func TestSeed(t *testing.T) {
	t.Setenv(Env, "")
	if got := Seed(t, 7); got != 7 {
		t.Errorf("got %d", got)
	}
	t.Setenv(Env, "8")
	if got := Seed(t, 7); got != 8 {
		t.Errorf("got %d", got)
	}
	t.Setenv(Env, "x")
	defer func() {
		if recover() == nil {
			t.Errorf("%s=x is taken", Env)
		}
	}()
	Seed(&logged{TB: t}, 7)
}

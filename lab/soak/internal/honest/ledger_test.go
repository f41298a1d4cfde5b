package honest

import (
	"strings"
	"testing"
	"time"
)

// TestLedger: a key may have its burst and what leaked since, and not much more.
func TestLedger(t *testing.T) {
	l := NewLedger()
	l.began = time.Now().Add(-10 * time.Second)
	for _, k := range l.keys {
		k.allowed.Store(k.maxBurst + 1 + int64(10*time.Second/k.interval))
	}
	if v := l.Violations(); v != nil {
		t.Errorf("what every limit allows is a violation: %q", v)
	}
	k := l.keys[1]
	k.allowed.Add(4)
	if v := l.Violations(); len(v) != 1 || !strings.HasPrefix(v[0], k.name+": 1014 units allowed, ") {
		t.Errorf("four units too many: %q", v)
	}
}

func TestNote(t *testing.T) {
	k := &key{name: "k"}
	for _, test := range []struct {
		reply   []any
		allowed int64 // in all
		ok      bool
	}{
		{[]any{int64(0), int64(16), int64(15), int64(-1), int64(60)}, 3, true},
		{[]any{int64(1), int64(16), int64(0), int64(60), int64(960)}, 3, true},
		{[]any{int64(0)}, 3, false},
	} {
		if err := k.note(test.reply, 3); (err == nil) != test.ok || k.allowed.Load() != test.allowed {
			t.Errorf("%v: %v, %d allowed", test.reply, err, k.allowed.Load())
		}
	}
}

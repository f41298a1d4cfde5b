package reserve

import (
	"bytes"
	"testing"

	"cellserver/internal/funnel"
)

func BenchmarkSettleAll(b *testing.B) {
	l := New(nil, t0)
	for id := range uint64(MaxOpen) {
		l.Reserve(t0, funnel.After(l.TAT(), 3), id, sec+int64(id*7919%MaxOpen), 3, 1)
	}
	payload, _ := l.Close()
	for b.Loop() {
		l, _ := Open(bytes.Clone(payload))
		l.Settle(t0 + 2*sec)
	}
}

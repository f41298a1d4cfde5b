package keys

import (
	"context"
	"strings"
	"testing"

	"cellserver/internal/store"
)

// endlessStore has long keys without end; a client leaves during its walk.
type endlessStore struct {
	store.Walker
	left int // keys until the client leaves
	gone context.CancelFunc
	name []byte
}

func (e *endlessStore) Scan(_ int64, _ uint16, cursor uint64, count int, visit func(store.Key, store.Entry)) uint64 {
	for range count {
		if e.left--; e.left == 0 {
			e.gone()
		}
		visit(store.Key{Name: e.name}, store.Entry{})
	}
	return cursor + 1
}

// TestWalkEndsWithItsClient before the end of a step.
func TestWalkEndsWithItsClient(t *testing.T) {
	const leavesAfter = 10
	ctx, gone := context.WithCancel(t.Context())
	defer gone()
	as := strings.Repeat("a", 1000)
	w := walk{
		scanQuery: &scanQuery{pattern: []byte("*" + as + "[ab]" + as + "b*"), count: 1 << 30}, maxBytes: 1 << 30,
		all: &endlessStore{left: leavesAfter, gone: gone, name: []byte(as + as + as + "b")},
	}
	w.many(ctx, 0)
	if w.n < leavesAfter-1 || w.n > leavesAfter+1 {
		t.Errorf("%d keys were matched, though its client has left after %d", w.n, leavesAfter)
	}
}

package remote

import (
	"strings"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// note counts what has become of the holds of a key that was written, and its spending.
func (s *Store) note(name string, n *limiter.Notes) {
	if n.IsZero() {
		return
	}
	key := []byte(strings.TrimPrefix(name, s.KeyPrefix))
	s.counts.holds.Ended(key, &n.Ended)
	s.book.Enter(key, n, nil)
}

// Spent implements store.Spender, for what this server has decided.
func (s *Store) Spent(limit string) store.Spends { return s.book.Of(limit) }

// SpendBy implements store.Spender.
func (s *Store) SpendBy(at func(limit []byte, atNs int64) (store.SpentAt, bool)) { s.book.At = at }

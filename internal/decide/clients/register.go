package clients

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Register holds the connected clients and their common memory. The zero Register is empty and without a
// limit.
type Register struct {
	// OnEvict is called with a client closed for its memory, and its bytes. It is set before the first
	// client.
	OnEvict func(c *Client, bytes int)

	memory  memory
	blocked atomic.Int64

	mu     sync.Mutex // rank 75: guards all below
	byID   map[int64]*Client
	lastID int64
}

// Add registers a client and gives it an ID.
func (r *Register) Add(c *Client) {
	r.mu.Lock()
	if r.byID == nil {
		r.byID = map[int64]*Client{}
	}
	r.lastID++
	c.ID = r.lastID
	c.register = r
	r.byID[c.ID] = c
	r.mu.Unlock()
	r.count(c.ownBytes())
}

func (r *Register) Remove(c *Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.byID[c.ID]; ok {
		delete(r.byID, c.ID)
		if bytes, counted := c.leave(); counted {
			r.count(-bytes)
		}
	}
}

func (r *Register) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// Blocked returns the number of clients that wait for their turn.
func (r *Register) Blocked() int { return int(r.blocked.Load()) }

// All returns the wanted clients, the oldest first.
func (r *Register) All(wanted func(*Client) bool) []*Client {
	r.mu.Lock()
	found := make([]*Client, 0, len(r.byID))
	for _, c := range r.byID {
		found = append(found, c)
	}
	r.mu.Unlock()
	found = slices.DeleteFunc(found, func(c *Client) bool { return !wanted(c) })
	slices.SortFunc(found, func(a, b *Client) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

// ByIDs returns the clients with the given IDs, in their order, without duplicates, which would multiply a
// reply's size.
func (r *Register) ByIDs(ids []int64) (found []*Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	listed := make(map[int64]bool)
	for _, id := range ids {
		if c := r.byID[id]; c != nil && !listed[id] {
			listed[id] = true
			found = append(found, c)
		}
	}
	return found
}

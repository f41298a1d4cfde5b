package clients

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Register is the clients that are connected, and the memory that they hold together. The zero Register is empty and sets
// no limit.
type Register struct {
	// OnEvict is told of a client that is closed for its memory, and of what it held. It is set before there are clients.
	OnEvict func(c *Client, bytes int)

	memory  memory
	blocked atomic.Int64

	mu     sync.Mutex // guards all below
	byID   map[int64]*Client
	lastID int64
}

// Add registers a client, and gives it its ID.
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

// Remove takes a client out of the register.
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

// Len returns how many clients are connected.
func (r *Register) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// Blocked returns how many clients wait for their turn.
func (r *Register) Blocked() int { return int(r.blocked.Load()) }

// All returns the clients that are wanted, the oldest first.
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

// ByIDs returns the clients that have one of the numbers, in the order of the numbers. A number counts once, or a
// command could ask for hundreds of times its length.
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

package engine

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
)

// queue has the undecided jobs of a key in the order of their arrival. It has one owner at a time, a lane or
// a goroutine, so there is at most one call under way for a key: all jobs that arrive meanwhile go with the
// next one, and those of a connection stay in order.
type queue struct {
	key     string
	waiting list // the lock of the queue's part of the table guards it

	next   *queue // in a lane, or in Starting; the owner's, as all below
	sender *Sender
	tries  int               // since the last answer
	to     *servers.Redirect // of the last try

	// Of the call under way:
	taken  list // jobs that it decides
	count  int  // of taken
	way    way
	call   servers.Call
	sentNs int64 // by the local clock

	runs     script.Runs // of the way funnels
	refunded bool        // a job gives units back

	bySwap bool   // only a swap can do the next job
	value  *value // nil unless a way reads it
}

// isLarge reports whether a key's value is large, or may be.
func (q *queue) isLarge() bool { return q.value != nil && q.value.last.large }

// bytes estimates the size of the key's next call with its reply.
func (q *queue) bytes() int {
	if q.value == nil {
		return len(q.key)
	}
	return len(q.key) + 2*len(q.value.last.Value)
}

const tableParts = 64

// table has the queues by key.
type table struct {
	seed  maphash.Seed
	parts [tableParts]struct {
		mu     sync.Mutex // rank 60: guards all below
		queues map[string]*queue
		_      [48]byte // a part has a cache line of its own
	}
	unused sync.Pool // of *queue
}

func (t *table) init() {
	t.seed = maphash.MakeSeed()
	for i := range t.parts {
		t.parts[i].queues = map[string]*queue{}
	}
}

func (t *table) part(key string) int { return int(maphash.String(t.seed, key) % tableParts) }

// push puts a job behind those for a key, whose name it does not keep. It returns the key's queue if it
// belongs to the caller now.
func (t *table) push(name []byte, j *Job) *queue {
	p := &t.parts[maphash.Bytes(t.seed, name)%tableParts]
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[string(name)]; q != nil {
		q.waiting.push(j)
		return nil
	}
	q, _ := t.unused.Get().(*queue)
	if q == nil {
		q = &queue{}
		q.call.Keys = make([]string, 1)
	}
	key := string(name)
	q.key, q.call.Keys[0] = key, key
	q.waiting.push(j)
	p.queues[key] = q
	return q
}

// release drops a queue without jobs, and returns false for others. The key's value is remembered before
// another queue can be made.
func (t *table) release(q *queue, remembered *seen) bool {
	p := &t.parts[t.part(q.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.waiting.first != nil {
		return false
	}
	if q.value != nil {
		remembered.add(q.key, q.value.last)
	}
	delete(p.queues, q.key)
	q.runs.Clear()
	*q = queue{call: servers.Call{Keys: q.call.Keys}, runs: q.runs}
	t.unused.Put(q)
	return true
}

// takeAll removes and returns all waiting jobs.
func (t *table) takeAll(q *queue) list {
	p := &t.parts[t.part(q.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	all := q.waiting
	q.waiting = list{}
	return all
}

// putBack puts jobs back, before all that arrived since.
func (t *table) putBack(q *queue, l *list) {
	if l.first == nil {
		return
	}
	p := &t.parts[t.part(q.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	q.waiting.putBefore(l)
}

// Keys returns the number of keys with waiting jobs.
func (e *Engine) Keys() (n int) {
	for i := range e.table.parts {
		p := &e.table.parts[i]
		p.mu.Lock()
		n += len(p.queues)
		p.mu.Unlock()
	}
	return n
}

package engine

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
)

// queue is the jobs of a key that are not decided, in the order in which they came. It has one owner at a
// time: who has made it busy, or was handed it, be it a lane or a goroutine. So there is at most one call
// under way for a key, all jobs that come meanwhile are the next one's, and a connection's are decided in
// their order.
type queue struct {
	key     string
	waiting list // the lock of the queue's part of the table guards it

	next   *queue // in a lane, or of those that are to start; it is the owner's, as is all below
	sender *Sender
	tries  int               // in vain, since there was an answer
	to     *servers.Redirect // whereto the last one was sent on

	// Of the call that is under way:
	taken  list // what it decides
	count  int  // how many these are
	way    way
	call   servers.Call
	sentNs int64 // by the local clock

	runs     script.Runs // of the way funnels
	refunded bool        // one of them gives units back

	bySwap bool   // no script that decides by itself can do what is next
	value  *value // of the ways that read it, and nil for others
}

// isLarge reports whether a key's value is large, or may be.
func (q *queue) isLarge() bool { return q.value != nil && q.value.last.large }

// bytes returns about how many bytes the key's next call has, and its reply.
func (q *queue) bytes() int {
	if q.value == nil {
		return len(q.key)
	}
	return len(q.key) + 2*len(q.value.last.Value)
}

const tableParts = 64

// table is the queues of all keys that have any, by key.
type table struct {
	seed  maphash.Seed
	parts [tableParts]struct {
		mu     sync.Mutex // guards all below
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

// release ends the ownership of a queue in which nothing waits, and returns false for others. What is known
// of the key's value is remembered before anybody makes another queue for it.
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

// takeAll takes all that waits in a queue.
func (t *table) takeAll(q *queue) list {
	p := &t.parts[t.part(q.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	all := q.waiting
	q.waiting = list{}
	return all
}

// putBack has jobs wait again, before all that came since they were taken.
func (t *table) putBack(q *queue, l *list) {
	if l.first == nil {
		return
	}
	p := &t.parts[t.part(q.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	q.waiting.putBefore(l)
}

// keys returns how many keys have a queue.
func (t *table) keys() (n int) {
	for i := range t.parts {
		p := &t.parts[i]
		p.mu.Lock()
		n += len(p.queues)
		p.mu.Unlock()
	}
	return n
}

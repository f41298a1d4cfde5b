package decide

import (
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Protocols other than RESP know a limit, a key and a number, and ask by values: nothing is written as words
// for another room to parse, and no reply is read back. RESP's arguments are parsed straight into a batch.

// Ask is what is asked by value: Requests, Together or an Operation. Its caller owns it, and what it refers
// to, once all of it is decided. The session that decides it calls all methods but Left from one goroutine.
type Ask interface {
	// Left reports whether a part has not been executed.
	Left() bool
	// Decided is the number of decisions so far.
	Decided() int
	// Decide takes the next decision, and Settle that of a whole operation, which has succeeded.
	Decide(q *store.Request)
	Settle()
	// Fail takes an error for the next decision, and Late for those between two positions.
	Fail(err error)
	Late(from, to int, err error)
	// Words are those of a command like the one under way, for SLOWLOG.
	Words(lower bool) [][]byte
	// Bytes is about the memory of all of it.
	Bytes() int
}

// Request is a request to a limiter, and then its decision.
type Request struct {
	Command  string // as a client spells the command that is like it, whose rights and counters are its own
	Limit    []byte // the name of a limit; nil for one of the caller's own
	Key      []byte
	Spec     limiter.Spec     // the caller's own limit; of a named one only the flag Debit or AtMost
	Quantity int64            // of units; a negative one returns them
	Shadow   bool             // of a limit of the caller's own in a Budget: it denies nothing
	Precise  *limiter.Precise // where Named is copied; nil for a place of its own

	Result funnel.Result       // in milliseconds
	Taken  int64               // units, with the flag AtMost
	Named  *limiter.NamedLimit // with the results of its rules; nil for a limit of the caller's own
	Policy *namedlimit.Policy  // of Named
	Err    error               // nil if the request was decided
}

func (q *Request) take(from *store.Request) {
	if q.Result = from.Result; q.Spec.Flags&limiter.AtMost != 0 {
		q.Taken = from.Taken()
	}
	q.Named, _ = from.Rule.Shared.(*limiter.NamedLimit)
}

// Words are those of the command that is like the request; see Words.
func (q *Request) Words(lower bool) [][]byte {
	return Words(q.Command, q.Limit, q.Key, &q.Spec, q.Quantity, lower)
}

const requestBytes = 256

func bytesOf(all []Request) (bytes int) {
	for i := range all {
		bytes += requestBytes + len(all[i].Limit) + len(all[i].Key)
	}
	return bytes
}

// Requests are decided in order, each by itself.
type Requests struct {
	All []Request

	Limits     namedlimit.Limits // of the whole call, once it has begun
	next, done int
}

// Next returns the request to be executed next, and its index.
func (r *Requests) Next() (q *Request, i int) { return &r.All[r.next], r.next }

func (r *Requests) Advance() { r.next++ }

func (r *Requests) Left() bool { return r.next < len(r.All) }

func (r *Requests) Decided() int { return r.done }

func (r *Requests) Decide(q *store.Request) {
	r.All[r.done].take(q)
	r.done++
}

func (r *Requests) Settle() {}

func (r *Requests) Fail(err error) {
	r.All[r.done].Err = err
	r.done++
}

func (r *Requests) Late(from, to int, err error) {
	for i := from; i < to; i++ {
		r.All[i].Err = err
	}
}

// Words returns none, as SLOWLOG shows batches.
func (r *Requests) Words(bool) [][]byte { return nil }

func (r *Requests) Bytes() int { return bytesOf(r.All) }

// whole is an Ask with one decision.
type whole struct {
	Err error // nil if it was done

	begun, done bool
}

// Begin notes that it is executed.
func (w *whole) Begin() { w.begun = true }

func (w *whole) Left() bool { return !w.begun }

func (w *whole) Decided() int {
	if w.done {
		return 1
	}
	return 0
}

func (w *whole) Decide(*store.Request) {}

func (w *whole) Settle() { w.done = true }

func (w *whole) Fail(err error) { w.Err, w.done = err, true }

func (w *whole) Late(_, _ int, err error) { w.Err = err }

// Together are requests decided in one step: all are charged or none, or each by itself. Err is that of all.
type Together struct {
	whole
	All  []Request
	Each bool

	// Limits are those of all requests, and Batch the store's requests, once it has begun.
	Limits namedlimit.Limits
	Batch  []store.Request
}

// TogetherCommand is counted for requests that are decided together.
const TogetherCommand = "CL.MCHECK"

func (t *Together) Settle() {
	t.done = true
	for i := range t.All {
		t.All[i].take(&t.Batch[i])
	}
}

func (t *Together) Words(lower bool) [][]byte {
	all := [][]byte{[]byte(TogetherCommand)}
	for i := range t.All {
		all = append(all, t.All[i].Words(lower)...)
	}
	return all
}

func (t *Together) Bytes() int { return bytesOf(t.All) }

// Operation is another command about a key, or about none.
type Operation struct {
	whole
	Command string   // the full name of the command that is like it
	Said    []string // the words of that command
	Key     []byte   // nil for none
	Do      Verb
	Step    store.Step // of Apply, which has its answers
	Refusal error      // of Refuse
	Deleted bool       // by Delete: the key was there

	// MayRead reports whether a key may be told to the user; it is set by Read.
	MayRead func(key []byte) bool
}

// Verb is what an Operation does once it is admitted.
type Verb uint8

const (
	Apply  Verb = iota // a step to the key
	Delete             // the key
	Read               // nothing: the caller reads what belongs to no key
	Refuse             // nothing, and fails
	Admit              // nothing, and is not even counted
)

func (o *Operation) Words(bool) [][]byte {
	all := make([][]byte, len(o.Said))
	for i, word := range o.Said {
		all[i] = []byte(word)
	}
	return all
}

func (o *Operation) Bytes() int { return requestBytes + len(o.Key) }
